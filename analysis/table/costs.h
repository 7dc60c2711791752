#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/table/table.h"

namespace phasor::analysis {

// What rows of a table cost, each also as a multiple of its baseline: parameters, and what `phasor bench --decode` measured beside
// the sweep (results/costs.h). Times are of one machine; no trial contains them.

/// Gives every trial with a record what was measured of its shape.
void join_costs(Frame& frame, const results::Folder& folder, const results::Costs& costs);

/// Of the trials that were chosen in a cell.
CellCosts costs_of(const Frame& frame, const std::vector<std::size_t>& trials);

/// Machine and build of the measurements, whether the trials are of another build, sizes by column, what was not measured and why.
std::vector<std::string> cost_notes(const Frame& frame, const Table& table, const results::Costs& costs);

}  // namespace phasor::analysis
