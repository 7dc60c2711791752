#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/frame/frame.h"
#include "analysis/selection/metric.h"
#include "analysis/selection/selection.h"

namespace phasor::analysis {

/// What one trial contributes to one number. The later kinds outweigh the earlier when settings are averaged.
struct Outcome {
  enum class Kind { finite, missing, diverged, failed };
  Kind kind = Kind::missing;
  double value = 0.0;      // if finite
  std::int64_t step = 0;   // of the evaluation, if finite
};

/// A trial that is done and whose number is infinite or NaN counts as diverged; one that did not measure it as missing.
/// UserError when the mean of the last k evaluations is asked for and there are fewer.
Outcome outcome_of(const Frame& frame, const FrameRow& row, const Series& series, const At& at, Direction direction);

/// By its status alone, for a cell where nothing is chosen.
Outcome outcome_of(const FrameRow& row);

void count(Counts& counts, Outcome::Kind kind);

/// UserError listing what there is when no finished trial measured `series` (`place` says who asked). A sweep without a
/// finished trial passes: its table is all n/a.
void need_measured(const Frame& frame, const Series& series, const std::string& place);
bool measured(const Frame& frame, const Series& series);

std::optional<double> summary_of(const FrameRow& row, const std::string& name);

}  // namespace phasor::analysis
