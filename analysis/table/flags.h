#pragma once

#include "analysis/table/table.h"

namespace phasor::analysis {

/// Marks what a reader must not overlook, on cells and on their numbers (tables.md has the list): more parameters than the
/// smallest row of a column, more trials spent on the choice than on another row, nothing learned, two groups.
void flag_cells(Table& table);

/// Adds a flag to every number that there is.
void flag_all(Table& table, const std::string& flag);

}  // namespace phasor::analysis
