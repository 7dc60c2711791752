#include "cli/bench_decode.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

#include "analysis/frame/frame.h"
#include "analysis/table/table.h"
#include "core/base/error.h"
#include "experiments/cost.h"
#include "experiments/trial.h"
#include "results/costs.h"
#include "sweeps/report.h"

namespace phasor::cli {

namespace {

std::string range_text(const std::vector<double>& seconds) {
  const results::Timing timing = *results::timing_of(seconds);
  return fmt::format("{:.3f} ms ({:.3f} to {:.3f})", timing.median, timing.low, timing.high);
}

std::string per_second(std::int64_t tokens, const std::vector<double>& seconds) {
  return grouped(static_cast<std::int64_t>(1e3 * static_cast<double>(tokens) / results::timing_of(seconds)->median));
}

/// The bytes that the launches of a step move, all of which may lie in a cache.
void print_places(const DecodeResult& result) {
  fmt::print("\n{:>9} {:>30} {:>12} {:>16} {:>12} {:>12} {:>9}\n", "context", "one token of every row", "tokens/s", "state of a row",
             "least bytes", "moved bytes", "launches");
  for (const DecodeResult::Place& place : result.places) {
    const Profile::Entry all = place.step.total();
    fmt::print("{:>9} {:>30} {:>12} {:>16} {:>12} {:>12} {:>9}\n", grouped(place.context), range_text(place.step_seconds),
               per_second(result.rows, place.step_seconds), grouped(place.state_bytes) + " B", grouped(place.least_bytes), grouped(all.bytes),
               grouped(all.calls));
  }
}

}  // namespace

void bench_decode_file(const std::deque<ExperimentSpec>& specs, const DecodeOptions& options) {
  const ExperimentSpec& spec = specs.front();
  const DecodeResult result = measure_decoding(specs, options).front();
  fmt::print("{}   {} parameters, {} threads\n", title_of(spec), grouped(result.parameters), spec.run.threads);
  fmt::print("prefill          {} for {} x {} tokens and the one after them, {} tokens/s\n", range_text(result.prefill_seconds), result.rows,
             result.tokens, per_second(result.rows * result.tokens, result.prefill_seconds));
  fmt::print("decode           {} of every row after {} tokens, with {} B of state a row\n",
             range_text(result.places[result.main].step_seconds), grouped(result.places[result.main].context),
             grouped(result.places[result.main].state_bytes));
  fmt::print("peak memory      {:.2f} MB of parameters, states and passes, up to {} tokens\n", static_cast<double>(result.memory_bytes) / 1e6,
             result.tokens);
  fmt::print("medians and quartiles of {} rounds\n", options.rounds);
  print_places(result);
}

namespace {

/// A shape to measure: one of the trials that have it.
struct Shape {
  const results::TrialRecord* record;
  results::MeasuredCost cost;
};

/// One reported trial of every shape, by column of the table; of a cell without a choice its first trial.
std::map<std::vector<std::int64_t>, std::vector<Shape>> shapes_of(const results::Manifest& manifest, const results::Folder& folder) {
  const analysis::Table table = analysis::make_table(manifest, folder, {.allow_mixed = true});
  std::map<std::string, const results::TrialRecord*> records;
  for (const results::TrialRecord& record : folder.records) records[record.id] = &record;
  const auto place_on = [&](const std::vector<std::int64_t>& at, const std::set<std::string>& roles) {
    std::vector<std::int64_t> place;
    for (std::size_t i = 0; i < at.size(); ++i)
      if (roles.contains(table.axes[i].role)) place.push_back(at[i]);
    return place;
  };
  std::set<std::vector<std::int64_t>> decided;  // cells in which something was chosen
  for (const analysis::TrialLine& trial : table.trials)
    if (trial.chosen) decided.insert(place_on(trial.at, {"row", "column", "average"}));
  std::map<std::vector<std::int64_t>, std::vector<Shape>> columns;
  std::set<std::string> known;
  for (const analysis::TrialLine& trial : table.trials) {
    const auto record = records.find(trial.id);
    const std::vector<std::int64_t> cell = place_on(trial.at, {"row", "column", "average"});
    if (record == records.end() || (decided.contains(cell) && !trial.chosen)) continue;
    results::MeasuredCost cost;
    cost.key = results::cost_key(record->second->spec);
    cost.trial = trial.id;
    if (!known.insert(cost.key).second) continue;
    columns[place_on(trial.at, {"column", "average"})].push_back({record->second, std::move(cost)});
  }
  return columns;
}

void read_record(const results::TrialRecord& record, const std::vector<std::string>& settings, ExperimentSpec& spec) {
  Document document = Document::parse(record.spec.pretty(), "trial " + record.id);
  ExperimentSpec::complete(document, spec.registry());
  std::vector<std::string> mistakes;
  sweeps::apply_settings(document, settings, mistakes);
  spec.read(document);
  sweeps::require_none({&document}, mistakes);
  require_data(spec);
}

void fill(results::MeasuredCost& cost, const ExperimentSpec& spec, const DecodeResult& result) {
  const DecodeResult::Place& place = result.places[result.main];
  cost.rows = result.rows;
  cost.tokens = result.tokens;
  cost.context = place.context;
  cost.training_ms = results::timing_of(result.training_seconds);
  cost.prefill_ms = results::timing_of(result.prefill_seconds);
  cost.decode_ms = results::timing_of(place.step_seconds);
  cost.state_bytes = place.state_bytes;
  cost.training_bytes = count_cost(spec).bytes();
  cost.decoding_bytes = result.memory_bytes;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

void measure(std::vector<Shape>& shapes, const std::vector<std::string>& settings, const Plugins& plugins, const DecodeOptions& options,
             std::int64_t& threads) {
  std::deque<ExperimentSpec> specs;
  std::vector<Shape*> measured;
  for (Shape& shape : shapes) {
    std::deque<ExperimentSpec> alone;  // a spec that cannot be read stays out of the others
    try {
      read_record(*shape.record, settings, alone.emplace_back(plugins.registry));
      Continuation(alone.back(), 1);  // refuses what cannot be continued
      read_record(*shape.record, settings, specs.emplace_back(plugins.registry));
    } catch (const UserError& error) {
      shape.cost.problem = one_line(error.what());
      continue;
    }
    threads = specs.back().run.threads;
    measured.push_back(&shape);
  }
  const std::vector<DecodeResult> found = measure_decoding(specs, options);
  for (std::size_t i = 0; i < measured.size(); ++i) fill(measured[i]->cost, specs[i], found[i]);
}

}  // namespace

void bench_decode_sweep(const std::string& folder, const std::vector<std::string>& settings, const Plugins& plugins, const DecodeOptions& options) {
  const results::Manifest manifest = results::read_manifest(folder);
  const results::Folder records = results::load_folder(folder);
  auto columns = shapes_of(manifest, records);
  if (columns.empty()) throw UserError(folder + ": no trial has a record yet, so there is no shape to measure; `phasor sweep` runs them");
  results::Costs costs;
  std::int64_t threads = 0;
  std::map<std::string, std::string> names;
  for (const results::ManifestTrial& trial : manifest.trials) names[trial.id] = analysis::name_of(manifest.axes, trial.at);
  for (auto& [place, shapes] : columns) {
    measure(shapes, settings, plugins, options, threads);
    for (const Shape& shape : shapes) {
      const results::MeasuredCost& cost = shape.cost;
      const std::string what = cost.problem.empty()
                                   ? fmt::format("step {:.3f} ms, prefill {:.3f} ms, one token {:.3f} ms, state {} B", cost.training_ms->median,
                                                 cost.prefill_ms->median, cost.decode_ms->median, grouped(*cost.state_bytes))
                                   : "not measured: " + cost.problem;
      fmt::print("{}   {}\n", names[cost.trial], what);
      costs.entries.push_back(cost);
    }
  }
  for (const auto& [name, value] : machine_provenance())
    if (name == "commit" || name == "dirty" || name == "processor") costs.facts.emplace_back(name, value);
  costs.facts.emplace_back("device", "cpu");
  costs.facts.emplace_back("threads", std::to_string(threads));
  costs.facts.emplace_back("rounds", std::to_string(options.rounds));
  results::write_costs(costs, folder);
  fmt::print("written          {}/costs.json   `phasor table {}` shows it\n", folder, folder);
}

}  // namespace phasor::cli
