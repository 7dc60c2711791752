#pragma once

#include "analysis/frame/frame.h"
#include "analysis/table/table.h"
#include "analysis/table/table_spec.h"

namespace phasor::analysis {

/// Groups the trials by the roles of their axes, chooses a value of the select axes in every cell, and describes the
/// reported numbers over the replicates. Average axes: the choice is made for each of their points, their values are
/// averaged within a replicate (the last axis first), and the deviation over replicates comes last.
Table ablate(const Frame& frame, const TableSpec& spec);

}  // namespace phasor::analysis
