#include "analysis/table/costs.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "analysis/text.h"

namespace phasor::analysis {
namespace {

using Value = std::optional<double>;

std::string sizes_of(const results::MeasuredCost& cost) {
  return grouped(cost.rows) + " x " + grouped(cost.tokens) + " tokens, one token of " + counted(cost.rows, "row") + " after " + grouped(cost.context);
}

bool gives_numbers(const FrameRow& row) { return row.status == TrialStatus::done || row.status == TrialStatus::diverged; }

bool is_dirty(const std::string& fact) { return !fact.empty() && fact != "0" && fact != "no" && fact != "false"; }

/// Of a fact that can differ, what people read.
std::string fact_text(const std::string& name, const std::string& value) {
  if (name == "dirty") return is_dirty(value) ? "with changes" : "without changes";
  return name + " " + (value.empty() ? "unknown" : name == "commit" ? value.substr(0, 12) : value);
}

/// Facts in which the trials and the measurements differ, as the trials have them.
std::vector<std::string> other_facts(const Frame& frame, const results::Costs& costs) {
  std::vector<std::string> different;
  for (const std::string fact : {"commit", "dirty", "processor", "device"}) {
    std::set<std::string> found;
    for (const FrameRow& row : frame.rows)
      if (gives_numbers(row)) found.insert(provenance_of(row, fact));
    found.erase(costs.fact(fact));
    for (const std::string& value : found)
      if (fact != "dirty" || is_dirty(value) != is_dirty(costs.fact(fact))) different.push_back(fact_text(fact, value));
  }
  return different;
}

std::string place_of(const Table& table, std::size_t row, std::size_t column) {
  std::vector<std::string> labels = table.rows[row];
  labels.insert(labels.end(), table.columns[column].begin(), table.columns[column].end());
  return labels.empty() ? table.name : join(labels, " / ");
}

}  // namespace

void join_costs(Frame& frame, const results::Folder& folder, const results::Costs& costs) {
  std::map<std::string, const results::MeasuredCost*> measured;
  for (const results::TrialRecord& record : folder.records) measured[record.id] = costs.find(results::cost_key(record.spec));
  for (FrameRow& row : frame.rows) {
    const auto found = measured.find(row.id);
    if (row.has_record() && found != measured.end()) row.cost = found->second;
  }
}

CellCosts costs_of(const Frame& frame, const std::vector<std::size_t>& trials) {
  CellCosts cell;
  std::set<std::string> sizes;
  const auto mean = [&](const auto& take) -> Value {
    double sum = 0.0;
    for (const std::size_t trial : trials) {
      const results::MeasuredCost* cost = frame.rows[trial].cost;
      const Value value = cost == nullptr ? Value() : take(*cost);
      if (!value) return std::nullopt;
      sum += *value;
    }
    return trials.empty() ? Value() : sum / static_cast<double>(trials.size());
  };
  const auto of = [](const auto& value) { return value ? Value(static_cast<double>(*value)) : Value(); };
  const auto middle = [](const std::optional<results::Timing>& timing) { return timing ? Value(timing->median) : Value(); };
  cell.training_ms = mean([&](const auto& cost) { return middle(cost.training_ms); });
  cell.prefill_ms = mean([&](const auto& cost) { return middle(cost.prefill_ms); });
  cell.decode_ms = mean([&](const auto& cost) { return middle(cost.decode_ms); });
  cell.decode_low_ms = mean([&](const auto& cost) { return cost.decode_ms ? Value(cost.decode_ms->low) : Value(); });
  cell.decode_high_ms = mean([&](const auto& cost) { return cost.decode_ms ? Value(cost.decode_ms->high) : Value(); });
  cell.state_bytes = mean([&](const auto& cost) { return of(cost.state_bytes); });
  cell.training_bytes = mean([&](const auto& cost) { return of(cost.training_bytes); });
  cell.decoding_bytes = mean([&](const auto& cost) { return of(cost.decoding_bytes); });
  for (const std::size_t trial : trials) {
    const FrameRow& row = frame.rows[trial];
    if (row.cost != nullptr && row.cost->problem.empty()) sizes.insert(sizes_of(*row.cost));
    if (row.cost != nullptr && !row.cost->problem.empty()) cell.problem = row.cost->problem;
    if (row.cost == nullptr && cell.problem.empty())
      cell.problem = row.has_record() ? "no measurement of this shape: `phasor bench DIR --decode`" : "the trial has no record";
  }
  cell.sizes = join({sizes.begin(), sizes.end()}, "; ");
  return cell;
}

std::vector<std::string> cost_notes(const Frame& frame, const Table& table, const results::Costs& costs) {
  const std::string build = costs.fact("commit").substr(0, 12) + (is_dirty(costs.fact("dirty")) ? " with changes" : "");
  std::string first = "medians of " + costs.fact("rounds") + " rounds in turn on " + costs.fact("processor") + ", " + costs.fact("device") + ", " +
                      costs.fact("threads") + (costs.fact("threads") == "1" ? " thread" : " threads") + ", commit " + build +
                      "; times are of this machine and no part of a trial's bits";
  if (!table.spec.baseline.empty()) first += "; x: times that of " + table.spec.baseline;
  std::vector<std::string> notes{std::move(first)};
  if (const std::vector<std::string> other = other_facts(frame, costs); !other.empty())
    notes.push_back("the trials are of another build or machine (" + join(other, ", ") + "): `phasor bench DIR --decode` with theirs measures again");
  std::map<std::string, std::set<std::string>> columns;  // sizes to labels
  std::set<std::string> problems;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      const Cell& cell = table.cell(row, column);
      if (!cell.costs.sizes.empty()) columns[cell.costs.sizes].insert(join(table.columns[column], " / "));
      if (cell.excluded.empty() && !cell.costs.problem.empty()) problems.insert(place_of(table, row, column) + ": not measured: " + cell.costs.problem);
    }
  }
  for (const auto& [sizes, labels] : columns) {
    const std::string where = join({labels.begin(), labels.end()}, ", ");
    notes.push_back((where.empty() || columns.size() == 1 ? "" : where + ": ") + "step and prefill of " + sizes);
  }
  notes.insert(notes.end(), problems.begin(), problems.end());
  return notes;
}

}  // namespace phasor::analysis
