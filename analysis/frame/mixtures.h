#pragma once

#include <string>
#include <vector>

#include "analysis/frame/frame.h"

namespace phasor::analysis {

/// Numbers of different programs, machines or data do not belong in one table.
///
/// Compared over all trials that give a number, by the names of their provenance: `commit` with `dirty`, `processor`,
/// `device`, and every name that begins with `numerics` (a trial only tells the revisions of what it used). Unless
/// `allow_mixed`, a difference is a UserError that names two trials and both values. Hashes of evaluation data, the
/// names that begin with `data.` except `data.train`, must agree between trials of one `task.name` within a column of the
/// table (and a point of an average axis), also with `allow_mixed`.
///
/// Gives what a reader should know: how many builds, processors and devices there are.
std::vector<std::string> check_mixtures(const Frame& frame, bool allow_mixed);

}  // namespace phasor::analysis
