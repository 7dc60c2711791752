#include "analysis/table/numbers.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "analysis/selection/outcome.h"
#include "analysis/table/costs.h"

namespace phasor::analysis {
namespace {

/// Averages over the last axis, then the one before it, until one number is left.
double nested_mean(std::map<Key, double> values, Scale scale) {
  while (values.size() > 1 || !values.begin()->first.empty()) {
    std::map<Key, std::vector<double>> shorter;
    for (const auto& [key, value] : values) shorter[Key(key.begin(), std::prev(key.end()))].push_back(value);
    values.clear();
    for (auto& [key, group] : shorter) values[key] = *describe(std::move(group), scale).mean;
  }
  return values.begin()->second;
}

bool can_be_solved(const TableSpec& spec, const Series& series) { return spec.solved_at && series.metric == spec.primary.metric; }

void count_solved(const TableSpec& spec, const std::vector<double>& values, Number& number) {
  if (!can_be_solved(spec, number.series)) return;
  const bool more = *direction_of(number.series.metric) == Direction::maximise;
  number.solved = std::count_if(values.begin(), values.end(), [&](double value) {
    return more ? value >= *spec.solved_at : value <= *spec.solved_at;
  });
  const auto n = static_cast<std::int64_t>(values.size());
  number.solved_share = wilson(static_cast<double>(*number.solved) / static_cast<double>(n), n);
}

}  // namespace

Number number_of(const Frame& frame, const TableSpec& spec, std::size_t which, const std::vector<Reported>& chosen) {
  Number number;
  number.series = spec.report[which];
  std::map<Key, Outcome::Kind> kinds;               // by replicate, the worst over the settings
  std::map<Key, std::map<Key, double>> by_setting;  // by replicate and point of the average axes
  for (const auto& [average, trials] : chosen) {
    for (const auto& [replicate, trial] : trials) {
      const Outcome outcome = trial ? outcome_of(frame, frame.rows[*trial], number.series, {}, Direction::maximise)
                                    : Outcome{Outcome::Kind::missing};
      Outcome::Kind& kind = kinds.emplace(replicate, Outcome::Kind::finite).first->second;
      kind = std::max(kind, outcome.kind);
      by_setting[replicate][average] = outcome.value;
    }
  }
  const Scale scale = spec.scale_of(number.series.metric);
  for (const auto& [replicate, kind] : kinds) {
    count(number.counts, kind);
    if (kind == Outcome::Kind::finite) number.values.emplace_back(replicate, nested_mean(by_setting[replicate], scale));
  }
  if (!number.counts.whole()) {
    number.flags.push_back("incomplete");
    return number;
  }
  std::vector<double> values;
  for (const auto& [replicate, value] : number.values) values.push_back(value);
  Bounds bounds = bounds_of(number.series.metric);
  bounds.solved_or_not = can_be_solved(spec, number.series);
  number.statistics = describe(values, scale, bounds);
  count_solved(spec, values, number);
  return number;
}

std::optional<double> mean_summary(const Frame& frame, const std::vector<std::size_t>& trials, const std::string& name) {
  std::vector<double> values;
  for (const std::size_t trial : trials) {
    const std::optional<double> value = summary_of(frame.rows[trial], name);
    if (value && std::isfinite(*value)) values.push_back(*value);
  }
  return describe(std::move(values)).mean;
}

void describe_cost(const Frame& frame, const std::vector<std::size_t>& trials, Cell& cell) {
  for (const std::size_t trial : trials) cell.parameters = std::max(cell.parameters, frame.rows[trial].parameters);
  cell.step_ms = mean_summary(frame, trials, "step_ms");
  cell.spikes = mean_summary(frame, trials, "spikes");
  cell.clipped_share = mean_summary(frame, trials, "clipped_share");
  cell.chance = mean_summary(frame, trials, "chance");
  cell.costs = costs_of(frame, trials);
}

}  // namespace phasor::analysis
