#pragma once

#include "analysis/frame/frame.h"
#include "analysis/table/table.h"

namespace phasor::analysis {

/// Every trial of the frame as it ended, with nothing chosen yet. `selects`: the sweep has something to choose.
std::vector<TrialLine> trial_lines(const Frame& frame, const TableSpec& spec, bool selects);

/// Fills `Table::varied` with the leaves below the varied paths, and its trials with their values.
void add_varied(const Frame& frame, Table& table);

}  // namespace phasor::analysis
