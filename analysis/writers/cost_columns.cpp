#include "analysis/writers/cost_columns.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "analysis/table/comparison.h"
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

}  // namespace

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
