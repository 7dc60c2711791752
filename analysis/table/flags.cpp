#include "analysis/table/flags.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace phasor::analysis {
namespace {

void flag(Cell& cell, const std::string& name) {
  cell.flags.push_back(name);
  for (Number& number : cell.numbers) number.flags.push_back(name);
}

/// Flags the cells of a column where `take` is more than `factor` times the least of the column.
template <class Take>
void flag_more(Table& table, const std::string& name, double factor, Take take) {
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    std::int64_t least = 0;
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      const std::int64_t value = take(table.cell(row, column));
      if (value > 0 && (least == 0 || value < least)) least = value;
    }
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      Cell& cell = table.cells[row * table.columns.size() + column];
      if (static_cast<double>(take(cell)) > factor * static_cast<double>(least)) flag(cell, name);
    }
  }
}

/// What guessing gives: chance of a token; whole sequences are never guessed.
double guessed(const std::string& metric, const Cell& cell) {
  return metric.ends_with("sequence_accuracy") ? 0.0 : cell.chance.value_or(0.0);
}

}  // namespace

void flag_cells(Table& table) {
  flag_more(table, "parameters", 1.05, [](const Cell& cell) { return cell.parameters; });
  flag_more(table, "budget", 1.0, [](const Cell& cell) { return cell.searched; });
  for (Cell& cell : table.cells) {
    for (Number& number : cell.numbers) {
      if (!number.statistics.mean || !bounds_of(number.series.metric).both()) continue;
      if (*number.statistics.max <= guessed(number.series.metric, cell) + 0.05) number.flags.push_back("floor");
      std::vector<double> values;
      for (const auto& [replicate, value] : number.values) values.push_back(value);
      if (two_groups(std::move(values))) number.flags.push_back("bimodal");
    }
  }
}

void flag_all(Table& table, const std::string& name) {
  for (Cell& cell : table.cells) {
    if (cell.excluded.empty()) flag(cell, name);
  }
}

}  // namespace phasor::analysis
