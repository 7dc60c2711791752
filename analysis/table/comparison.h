#pragma once

#include <cstddef>
#include <optional>

#include "analysis/table/table.h"

namespace phasor::analysis {

/// The row that a row is compared with, itself for a baseline; nothing without a baseline. The label may be that of a whole row
/// ("GLA / RoPE"), or of one row axis: then every row is compared with the one that differs in this axis alone.
std::optional<std::size_t> baseline_of(const Table& table, std::size_t row);

/// How many times the training step of the baseline a row's takes, in one column; nothing where one is not known.
std::optional<double> step_against_baseline(const Table& table, std::size_t row, std::size_t column);

/// Fills the differences of all rows from their baselines over the seeds that both have, corrects p within the family (the cells
/// of the primary number), and marks the best number of each column where the difference holds.
void compare_rows(Table& table);

}  // namespace phasor::analysis
