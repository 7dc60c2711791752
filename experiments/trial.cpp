#include "experiments/trial.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/ops/revision.h"
#include "experiments/curve.h"
#include "experiments/trainer.h"

namespace phasor {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Four digits; a NaN without its sign.
std::string short_text(double value) { return std::isnan(value) ? "nan" : fmt::format("{:.4g}", value); }

/// One trial from the first step to the record. Members are what the phases share.
class Run {
 public:
  Run(const ExperimentSpec& spec, results::TrialRecord& record, const std::function<void(const TrialProgress&)>& watch,
      const std::function<bool()>& stop)
      : spec_(spec), record_(record), watch_(watch), stop_(stop), trainer_(spec) {
    for (const Split split : {Split::valid, Split::test})
      for (const Slice& slice : trainer_.task().slices(split)) {
        data_.push_back(make_evaluation_data(trainer_.task(), slice, static_cast<std::uint64_t>(spec.eval_seed)));
        record.provenance.emplace_back(fmt::format("data.{}.{}", to_text(split), slice.length), data_.back().hash);
      }
    const TrainingRows training(trainer_.task(), trainer_.train_slice(), static_cast<std::uint64_t>(spec.seed));
    for (const EvaluationData& data : data_)
      shared_.emplace_back(fmt::format("shared_rows.{}.{}", to_text(data.slice.split), data.slice.length),
                           static_cast<double>(training.shared(data)));
    for (const ParameterEntry& entry : trainer_.parameters().entries())
      record.parameters.push_back({entry.name, entry.count(), entry.frozen,
                                   !entry.frozen && (spec.optimizer.adamw.decay == "all" || entry.decays)});
  }

  void train() {
    const auto start = Clock::now();
    const std::int64_t steps = spec_.train.steps;
    while (trainer_.steps_done() < steps && record_.status == results::Status::done) {
      const StepResult result = trainer_.step();
      const std::int64_t step = trainer_.steps_done();
      note_step(step, result);
      if (record_.status != results::Status::done) break;
      if (watch_) watch_({step, steps, result.loss, result.lr, result.grad_norm, "train"});
      if (step < steps && spec_.train.eval_every > 0 && step % spec_.train.eval_every == 0) {
        const auto pause = Clock::now();
        evaluate(Split::valid, step);
        evaluation_seconds_ += seconds_since(pause);
      }
      if (stop_ && stop_() && step < steps) {
        record_.status = results::Status::error;
        record_.message = fmt::format("interrupted after step {} of {}", step, steps);
      }
    }
    train_seconds_ = seconds_since(start) - evaluation_seconds_;
    if (record_.status != results::Status::done) return;
    final_ = true;
    evaluate(Split::valid, steps);
    evaluate(Split::test, steps);
  }

  /// The numbers that need the whole run.
  void summarise(Clock::time_point start) {
    const std::int64_t done = trainer_.steps_done();
    const ParameterStore& parameters = trainer_.parameters();
    const std::int64_t tokens = done * spec_.train.batch * trainer_.task().tokens(trainer_.train_slice());
    record_.summary = {
        {"steps", static_cast<double>(done)},
        {"steps_to_solve", steps_to_solve_},
        {"steps_without_targets", static_cast<double>(without_targets_)},
        {"spikes", static_cast<double>(spikes_.spikes())},
        {"clipped_share", done > 0 ? static_cast<double>(clipped_) / static_cast<double>(done) : 0.0},
        {"tokens", static_cast<double>(tokens)},
        {"parameters", static_cast<double>(parameters.total())},
        {"parameters_frozen", static_cast<double>(parameters.total() - parameters.total(false))},
        {"chance", trainer_.task().chance()},
        {"seconds", seconds_since(start)},
        {"step_ms", done > 0 ? 1e3 * train_seconds_ / static_cast<double>(done) : 0.0},
    };
    record_.summary.insert(record_.summary.end(), shared_.begin(), shared_.end());
    const Tensor& flat = parameters.flat();
    if (flat.dtype() == Dtype::f64)
      bits_.update_values(std::span<const double>(flat.as<double>(), static_cast<std::size_t>(flat.size())));
    else
      bits_.update_values(std::span<const float>(flat.as<float>(), static_cast<std::size_t>(flat.size())));
    record_.bits = bits_.hex();
  }

 private:
  void note_step(std::int64_t step, const StepResult& result) {
    if (result.targets == 0) {
      ++without_targets_;
      if (without_targets_ == spec_.train.steps) {
        record_.status = results::Status::error;
        record_.message = "no step had a supervised token: the task scores nothing";
      }
      return;
    }
    bits_.update_value(result.loss);
    bits_.update_value(result.grad_norm);
    clipped_ += result.clipped ? 1 : 0;
    spikes_.add(result.grad_norm);
    const bool finite = std::isfinite(result.loss) && std::isfinite(result.grad_norm);
    if (step % spec_.run.log_every == 0 || step == spec_.train.steps || step == 1 || !finite)
      record_.steps.push_back({step, result.loss, result.lr, result.grad_norm, result.clipped});
    if (!finite) {
      record_.status = results::Status::diverged;
      record_.message = fmt::format("step {}: loss {}, gradient norm {} (at the step before: {})", step, short_text(result.loss),
                                    short_text(result.grad_norm), last_norm_ ? short_text(*last_norm_) : "none");
    }
    last_norm_ = result.grad_norm;
  }

  void evaluate(Split split, std::int64_t step) {
    bool first = true;
    for (const EvaluationData& data : data_) {
      if (data.slice.split != split) continue;
      if (watch_) watch_({step, spec_.train.steps, 0.0, 0.0, 0.0, to_text(split)});
      const SliceResult result = trainer_.evaluate(data);
      const auto add = [&](const char* metric, double value, std::int64_t count) {
        record_.evals.push_back({step, to_text(split), metric, data.slice.length, value, count});
        if (final_) bits_.update_value(value);
      };
      add("loss", result.loss, result.tokens);
      add("token_accuracy", result.token_accuracy, result.tokens);
      add("sequence_accuracy", result.sequence_accuracy, result.rows);
      // Solved: at the first slice of valid, the training length.
      if (split == Split::valid && first && std::isnan(steps_to_solve_) && result.sequence_accuracy >= spec_.train.solved_at)
        steps_to_solve_ = static_cast<double>(step);
      first = false;
    }
  }

  const ExperimentSpec& spec_;
  results::TrialRecord& record_;
  const std::function<void(const TrialProgress&)>& watch_;
  const std::function<bool()>& stop_;
  Trainer trainer_;
  std::vector<EvaluationData> data_;
  std::vector<std::pair<std::string, double>> shared_;  // evaluation rows that are training rows too
  ContentHash bits_;
  SpikeCounter spikes_;
  std::optional<double> last_norm_;
  std::int64_t clipped_ = 0, without_targets_ = 0;
  double steps_to_solve_ = std::numeric_limits<double>::quiet_NaN();
  double train_seconds_ = 0.0, evaluation_seconds_ = 0.0;
  bool final_ = false;
};

void add_revisions(const ExperimentSpec& spec, results::TrialRecord& record) {
  const Registry& registry = spec.registry();
  const auto add = [&](const char* kind, const PluginInfo& info) {
    record.provenance.emplace_back(fmt::format("numerics.{}.{}", kind, info.name), std::to_string(info.revision));
  };
  record.provenance.emplace_back("numerics.core", std::to_string(numerics_revision));
  add("task", registry.find_task(spec.task.name)->info);
  add("backbone", registry.find_backbone(spec.backbone.name)->info);
  add("encoding", registry.find_encoding(spec.encoding.name)->info);
}

}  // namespace

results::TrialRecord run_trial(const ExperimentSpec& spec, const std::string& command,
                               const std::function<void(const TrialProgress&)>& watch, const std::function<bool()>& stop) {
  const auto start = Clock::now();
  Trial trial = make_trial(spec);
  results::TrialRecord record;
  record.id = std::move(trial.id);
  record.spec = std::move(trial.spec);
  record.provenance = machine_provenance();
  record.provenance.emplace_back("device", "cpu");
  record.provenance.emplace_back("command", command);
  add_revisions(spec, record);
  const auto fail = [&](const std::string& message) {
    record.status = results::Status::error;
    record.message = message;
  };
  try {
    Run run(spec, record, watch, stop);
    run.train();
    run.summarise(start);
  } catch (const std::bad_alloc&) {
    fail("out of memory");
  } catch (const std::exception& error) {
    fail(error.what());
  } catch (...) {
    fail("a plugin threw something that is not an exception");
  }
  return record;
}

}  // namespace phasor
