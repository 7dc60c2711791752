#include "experiments/trial.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/graph/device.h"
#include "core/graph/transfer.h"
#include "experiments/checkpoint.h"
#include "experiments/trainer.h"

namespace phasor {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Four digits; a NaN without its sign.
std::string short_text(double value) { return std::isnan(value) ? "nan" : fmt::format("{:.4g}", value); }

/// Hash of numbers, each with the hash so far: it can go on from its text.
class BitsChain {
 public:
  explicit BitsChain(std::string hex) : hex_(std::move(hex)) {}
  template <class T>
  void add(std::span<const T> values) {
    ContentHash hash;
    hash.update(hex_);
    hash.update_values(values);
    hex_ = hash.hex();
  }
  void add(double value) { add(std::span<const double>(&value, 1)); }
  void add(const Tensor& values) {
    const auto size = static_cast<std::size_t>(values.size());
    if (values.dtype() == Dtype::f64)
      add(std::span<const double>(values.as<double>(), size));
    else
      add(std::span<const float>(values.as<float>(), size));
  }
  const std::string& hex() const { return hex_; }

 private:
  std::string hex_;
};

/// One trial from the first step to the record. Members are what the phases share.
class Run {
 public:
  Run(const ExperimentSpec& spec, results::TrialRecord& record, const TrialSettings& settings)
      : spec_(spec), record_(record), settings_(settings), trainer_(spec, settings.device) {
    for (const Split split : {Split::valid, Split::test})
      for (const Slice& slice : trainer_.task().slices(split)) {
        data_.push_back(make_evaluation_data(trainer_.task(), slice, static_cast<std::uint64_t>(spec.eval_seed)));
        record.provenance.emplace_back(fmt::format("data.{}.{}", to_text(split), slice.length), data_.back().hash);
      }
    for (const ParameterEntry& entry : trainer_.parameters().entries())
      record.parameters.push_back({entry.name, entry.count(), entry.frozen,
                                   !entry.frozen && (spec.optimizer.decay().decay == "all" || entry.decays)});
    go_on();
    prepare_seconds_ = seconds_since(start_);
  }

  void train() {
    const std::int64_t steps = spec_.train.steps;
    while (trainer_.steps_done() < steps && record_.status == results::Status::done) {
      const auto start = Clock::now();
      trainer_.start_step();
      const std::int64_t step = trainer_.steps_done();
      const auto due = [&](std::int64_t every) { return every > 0 && step % every == 0; };
      const bool stopped = settings_.stop && settings_.stop() && step < steps;
      // What a step on a device found out is asked for where the record or what follows needs it: asking waits.
      const bool asked = settings_.device == nullptr || step == 1 || step == steps || stopped || due(spec_.run.log_every) ||
                         due(spec_.train.eval_every) || due(spec_.run.checkpoint_every);
      if (asked) note_results();
      counts_.train_seconds += seconds_since(start);
      if (record_.status != results::Status::done) break;
      if (step < steps && due(spec_.train.eval_every)) evaluate(Split::valid, step);
      if (stopped || due(spec_.run.checkpoint_every) || step == steps) keep(step == steps);
      if (stopped) {
        record_.status = results::Status::error;
        record_.message = fmt::format("interrupted after step {} of {}", step, steps);
      }
    }
    if (record_.status != results::Status::done) return;
    final_ = true;
    evaluate(Split::valid, steps);
    evaluate(Split::test, steps);
  }

  /// The numbers that need the whole run.
  void summarise() {
    const std::int64_t done = trainer_.steps_done();
    const ParameterStore& parameters = trainer_.parameters();
    const auto share = [&](double count) { return done > 0 ? count / static_cast<double>(done) : 0.0; };
    record_.summary = {
        {"steps", static_cast<double>(done)},
        {"steps_to_solve", counts_.steps_to_solve},
        {"steps_without_targets", static_cast<double>(counts_.without_targets)},
        {"spikes", static_cast<double>(counts_.spikes.spikes())},
        {"clipped_share", share(static_cast<double>(counts_.clipped))},
        {"tokens", static_cast<double>(trainer_.tokens_seen())},
        {"parameters", static_cast<double>(parameters.total())},
        {"parameters_frozen", static_cast<double>(parameters.total() - parameters.total(false))},
        {"chance", trainer_.task().chance()},
        {"resumed", resumed_ ? 1.0 : 0.0},
    };
    const auto overlap = Clock::now();
    add_overlap();
    record_.summary.emplace_back("seconds_prepare", prepare_seconds_);
    record_.summary.emplace_back("seconds_train", counts_.train_seconds);
    record_.summary.emplace_back("seconds_evaluate", evaluate_seconds_);
    record_.summary.emplace_back("seconds_overlap", seconds_since(overlap));
    record_.summary.emplace_back("seconds", counts_.seconds + seconds_since(start_));
    record_.summary.emplace_back("step_ms", 1e3 * share(counts_.train_seconds));
    BitsChain bits(counts_.bits);
    for (const double value : final_values_) bits.add(value);
    Arena memory;
    bits.add(fetched(trainer_.device(), parameters.flat(), memory));
    record_.bits = bits.hex();
  }

 private:
  void go_on() {
    if (settings_.folder.empty()) return;
    std::string warning;
    const auto checkpoint = load_checkpoint(settings_.folder, record_, trainer_, warning);
    if (!warning.empty() && settings_.warn) settings_.warn(warning);
    if (!checkpoint) return;
    record_.steps = checkpoint->record.steps;
    record_.evals = checkpoint->record.evals;
    counts_ = checkpoint->counts;
    resumed_ = true;
  }

  /// Writes a checkpoint if the trial has them; at the end only when it is to be kept. A disk that is full stops no trial.
  void keep(bool at_end) {
    const bool wanted = at_end ? spec_.run.keep_checkpoint : spec_.run.checkpoint_every > 0;
    if (settings_.folder.empty() || !wanted) return;
    Checkpoint checkpoint{record_, counts_};
    checkpoint.counts.seconds += seconds_since(start_);
    try {
      save_checkpoint(settings_.folder, checkpoint, trainer_);
    } catch (const UserError& error) {
      if (settings_.warn) settings_.warn(fmt::format("no checkpoint at step {}: {}", trainer_.steps_done(), error.what()));
    }
  }

  void add_overlap() {
    const std::int64_t rows = trainer_.steps_done() * spec_.train.batch;
    const OverlapReport report = measure_overlap(trainer_.task(), static_cast<std::uint64_t>(spec_.seed), rows, data_);
    for (std::size_t i = 0; i < data_.size(); ++i) {
      const std::string where = fmt::format("{}.{}", to_text(data_[i].slice.split), data_[i].slice.length);
      record_.summary.emplace_back("shared_rows." + where, static_cast<double>(report.slices[i].shared));
      record_.summary.emplace_back("shared_by_chance." + where, report.slices[i].by_chance);
      record_.summary.emplace_back("units." + where, static_cast<double>(report.slices[i].units));
      record_.summary.emplace_back("distinct." + where, static_cast<double>(report.slices[i].distinct));
    }
    record_.summary.emplace_back("shared_rows_compared", static_cast<double>(report.rows_compared));
  }

  /// Nothing that comes after a loss that is not finite counts.
  void note_results() {
    for (const StepResult& result : trainer_.take_results()) {
      note_step(result.step, result);
      if (record_.status != results::Status::done) return;
      if (settings_.watch) settings_.watch({result.step, spec_.train.steps, result.loss, result.lr, result.grad_norm, "train"});
    }
  }

  void note_step(std::int64_t step, const StepResult& result) {
    if (result.targets == 0) {
      ++counts_.without_targets;
      if (counts_.without_targets == spec_.train.steps) {
        record_.status = results::Status::error;
        record_.message = "no step had a supervised token: the task scores nothing";
      }
      return;
    }
    BitsChain bits(counts_.bits);
    bits.add(std::span<const double>(std::array{result.loss, result.grad_norm}));
    counts_.bits = bits.hex();
    counts_.clipped += result.clipped ? 1 : 0;
    counts_.spikes.add(result.grad_norm);
    const bool finite = std::isfinite(result.loss) && std::isfinite(result.grad_norm);
    if (step % spec_.run.log_every == 0 || step == spec_.train.steps || step == 1 || !finite)
      record_.steps.push_back({step, result.loss, result.lr, result.grad_norm, result.clipped});
    if (!finite) {
      record_.status = results::Status::diverged;
      record_.message = fmt::format("step {}: loss {}, gradient norm {} (at the step before: {})", step, short_text(result.loss),
                                    short_text(result.grad_norm), counts_.last_norm ? short_text(*counts_.last_norm) : "none");
    }
    counts_.last_norm = result.grad_norm;
  }

  void add_value(std::int64_t step, const Slice& slice, const char* metric, double value, std::int64_t count) {
    record_.evals.push_back({step, to_text(slice.split), metric, slice.length, value, count});
    if (final_) final_values_.push_back(value);
  }

  /// They follow from the losses and are no further bits of the result.
  void add_perplexities(std::int64_t step, const EvaluationData& data, const SliceResult& result) {
    const auto add = [&](const char* metric, std::int64_t slice, double value, std::int64_t count) {
      record_.evals.push_back({step, to_text(data.slice.split), metric, slice, value, count});
    };
    add("perplexity", data.slice.length, std::exp(result.loss), result.tokens);
    if (data.text_bytes > 0) {
      const double per_byte = result.loss * static_cast<double>(result.tokens) / static_cast<double>(data.text_bytes);
      add("byte_perplexity", data.slice.length, std::exp(per_byte), data.text_bytes);
      add("bits_per_byte", data.slice.length, per_byte / std::log(2.0), data.text_bytes);
    }
    for (const SliceResult::Range& range : result.positions) {
      add("position_loss", range.end, range.loss, range.tokens);
      add("position_perplexity", range.end, std::exp(range.loss), range.tokens);
    }
  }

  void evaluate(Split split, std::int64_t step) {
    const auto start = Clock::now();
    bool first = true;
    for (const EvaluationData& data : data_) {
      if (data.slice.split != split) continue;
      if (settings_.watch) settings_.watch({step, spec_.train.steps, 0.0, 0.0, 0.0, to_text(split)});
      const SliceResult result = trainer_.evaluate(data);
      add_value(step, data.slice, "loss", result.loss, result.tokens);
      add_value(step, data.slice, "token_accuracy", result.token_accuracy, result.tokens);
      add_value(step, data.slice, "sequence_accuracy", result.sequence_accuracy, result.rows);
      add_value(step, data.slice, "class_accuracy", result.class_accuracy, result.classes);
      if (trainer_.task().text()) add_perplexities(step, data, result);
      // Solved: at the first slice of valid, the training length.
      if (split == Split::valid && first && std::isnan(counts_.steps_to_solve) && result.sequence_accuracy >= spec_.train.solved_at)
        counts_.steps_to_solve = static_cast<double>(step);
      first = false;
      if (!final_ || trainer_.task().prompt(data.slice) == 0) continue;
      const FreeResult free = trainer_.decode(data);
      add_value(step, data.slice, "free_token_accuracy", free.token_accuracy, free.tokens);
      add_value(step, data.slice, "free_sequence_accuracy", free.sequence_accuracy, free.rows);
    }
    evaluate_seconds_ += seconds_since(start);
  }

  const Clock::time_point start_ = Clock::now();
  const ExperimentSpec& spec_;
  results::TrialRecord& record_;
  const TrialSettings& settings_;
  Trainer trainer_;
  std::vector<EvaluationData> data_;
  TrialCounts counts_;
  std::vector<double> final_values_;  // of the last evaluation
  double prepare_seconds_ = 0.0, evaluate_seconds_ = 0.0;  // of this process
  bool final_ = false, resumed_ = false;
};

}  // namespace

results::TrialRecord run_trial(const ExperimentSpec& spec, const TrialSettings& settings) {
  const std::string kind = settings.device != nullptr ? settings.device->kind() : "cpu";
  Trial trial = make_trial(spec, kind);
  results::TrialRecord record;
  record.id = std::move(trial.id);
  record.spec = std::move(trial.spec);
  record.provenance = machine_provenance();
  record.provenance.emplace_back("device", kind);
  if (settings.device != nullptr) record.provenance.emplace_back("device.name", settings.device->name());
  record.provenance.emplace_back("command", settings.command);
  for (auto& fact : revisions_of(spec)) record.provenance.push_back(std::move(fact));
  const auto fail = [&](const std::string& message, results::Status status = results::Status::error) {
    record.status = status;
    record.message = message;
  };
  try {
    if (std::string library = attention_library_of(spec, settings.device); !library.empty())
      record.provenance.emplace_back("device.attention", std::move(library));
    Run run(spec, record, settings);
    run.train();
    run.summarise();
  } catch (const std::bad_alloc& error) {
    const bool told = std::string_view(error.what()).starts_with("out of memory");  // with how much
    fail(told ? error.what() : "out of memory", results::Status::oom);
  } catch (const std::exception& error) {
    fail(error.what());
  } catch (...) {
    fail("a plugin threw something that is not an exception");
  }
  return record;
}

}  // namespace phasor
