#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/table/table.h"
#include "analysis/writers/grid.h"

namespace phasor::analysis {

// What rows of a table cost (analysis/table/costs.h), as columns.

/// Columns of the forms for data: a number, then its ratio to that of the baseline. `not_available` where it was not measured; a
/// ratio is empty without a baseline.
std::vector<std::string> cost_heads();
std::vector<std::string> cost_texts(const Table& table, std::size_t row, std::size_t column);

/// For people: a line a row, "0.213 ms  1.07x"; several columns of the table as a range, and the mean of their ratios. No lines
/// when nothing was measured.
Grid cost_grid(const Table& table);

}  // namespace phasor::analysis
