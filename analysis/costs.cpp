#include "analysis/costs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "analysis/comparison.h"
#include "analysis/text.h"

namespace phasor::analysis {
namespace {

using Value = std::optional<double>;

enum class Unit { count, milliseconds, bytes };

/// One quantity: its columns in data, its head for people, and where a cell has it.
struct Quantity {
  std::string name, ratio, head;
  Unit unit;
  std::function<Value(const Cell&)> of;
};

const std::vector<Quantity>& quantities() {
  static const std::vector<Quantity> all = {
      {"parameters", "parameters_ratio", "parameters", Unit::count,
       [](const Cell& cell) { return cell.parameters > 0 ? Value(static_cast<double>(cell.parameters)) : Value(); }},
      {"training_ms", "training_ratio", "training step", Unit::milliseconds, [](const Cell& cell) { return cell.costs.training_ms; }},
      {"prefill_ms", "prefill_ratio", "prefill", Unit::milliseconds, [](const Cell& cell) { return cell.costs.prefill_ms; }},
      {"decode_ms", "decode_ratio", "one token", Unit::milliseconds, [](const Cell& cell) { return cell.costs.decode_ms; }},
      {"state_bytes", "state_ratio", "state of a row", Unit::bytes, [](const Cell& cell) { return cell.costs.state_bytes; }},
      {"training_bytes", "training_bytes_ratio", "memory to train", Unit::bytes, [](const Cell& cell) { return cell.costs.training_bytes; }},
      {"decoding_bytes", "decoding_bytes_ratio", "memory to decode", Unit::bytes, [](const Cell& cell) { return cell.costs.decoding_bytes; }}};
  return all;
}

/// How many times that of the baseline; nothing where one of both is not known.
Value ratio_of(const Table& table, std::size_t row, std::size_t column, const Quantity& quantity) {
  const std::optional<std::size_t> base = baseline_of(table, row);
  if (!base) return std::nullopt;
  const Value ours = quantity.of(table.cell(row, column)), theirs = quantity.of(table.cell(*base, column));
  if (!ours || !theirs || *theirs <= 0.0) return std::nullopt;
  return *ours / *theirs;
}

std::string or_missing(const std::string& text) { return text.empty() ? not_available : text; }

/// Three digits: "0.0213", "4.10", "327".
std::string three_digits(double value) {
  const double size = std::abs(value);
  return fixed(value, size >= 100.0 ? 0 : size >= 10.0 ? 1 : size >= 1.0 ? 2 : size >= 0.1 ? 3 : 4);
}

std::string in_unit(double value, Unit unit) {
  if (unit == Unit::count) return grouped(std::llround(value));
  if (unit == Unit::milliseconds) return three_digits(value) + " ms";
  if (value < 1000.0) return grouped(std::llround(value)) + " B";
  return value < 1e6 ? three_digits(value / 1e3) + " kB" : value < 1e9 ? three_digits(value / 1e6) + " MB" : three_digits(value / 1e9) + " GB";
}

/// "5.27 to 6.47 ms"; one text where both ends are alike.
std::string range_text(const std::string& low, const std::string& high) {
  if (low == high) return low;
  const std::size_t unit = low.rfind(' ');
  const bool shared = unit != std::string::npos && high.ends_with(low.substr(unit));
  return (shared ? low.substr(0, unit) : low) + " to " + high;
}

/// Of a row, over the columns of the table that have it.
std::string text_of(const Table& table, std::size_t row, const Quantity& quantity) {
  std::vector<double> values, ratios;
  std::size_t expected = 0;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    const Cell& cell = table.cell(row, column);
    if (!cell.excluded.empty()) continue;
    ++expected;
    if (const Value value = quantity.of(cell)) values.push_back(*value);
    if (const Value ratio = ratio_of(table, row, column, quantity)) ratios.push_back(*ratio);
  }
  if (values.empty()) return "n/a";
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  std::string text = range_text(in_unit(*least, quantity.unit), in_unit(*most, quantity.unit));
  if (!ratios.empty()) text += "  " + fixed(*describe(ratios).mean, 2) + "x";
  if (values.size() < expected) text += "  (" + grouped(static_cast<std::int64_t>(values.size())) + " of " + grouped(static_cast<std::int64_t>(expected)) + ")";
  return text;
}

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

std::vector<std::string> cost_heads() {
  std::vector<std::string> heads;
  for (const Quantity& quantity : quantities()) {
    if (quantity.name != "parameters") heads.push_back(quantity.name);  // which other columns have
    if (quantity.name == "decode_ms") heads.insert(heads.end(), {"decode_low_ms", "decode_high_ms"});
    heads.push_back(quantity.ratio);
  }
  return heads;
}

std::vector<std::string> cost_texts(const Table& table, std::size_t row, std::size_t column) {
  const Cell& cell = table.cell(row, column);
  const bool compared = baseline_of(table, row).has_value();
  std::vector<std::string> texts;
  for (const Quantity& quantity : quantities()) {
    const Value value = quantity.of(cell);
    if (quantity.name != "parameters")
      texts.push_back(or_missing(!value ? "" : quantity.unit == Unit::bytes ? std::to_string(std::llround(*value)) : digits(*value)));
    if (quantity.name == "decode_ms")
      texts.insert(texts.end(), {or_missing(digits(cell.costs.decode_low_ms)), or_missing(digits(cell.costs.decode_high_ms))});
    texts.push_back(compared ? or_missing(digits(ratio_of(table, row, column, quantity))) : "");
  }
  return texts;
}

Grid cost_grid(const Table& table) {
  Grid grid;
  if (table.costs.empty()) return grid;
  for (const results::ManifestAxis& axis : table.axes)
    if (axis.role == "row") grid.heads.push_back(axis.name);
  if (grid.heads.empty()) grid.heads.push_back("");
  grid.heads.back() = "cost of " + grid.heads.back();
  for (const Quantity& quantity : quantities()) grid.heads.push_back(quantity.head);
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    std::vector<std::string> line = table.rows[row];
    if (line.empty()) line.push_back("");
    for (const Quantity& quantity : quantities()) line.push_back(text_of(table, row, quantity));
    grid.lines.push_back(std::move(line));
  }
  return grid;
}

}  // namespace phasor::analysis
