#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/selection/metric.h"

namespace phasor::analysis {

/// What became of the trials behind a number. finite + diverged + failed + missing = expected, always.
struct Counts {
  std::int64_t expected = 0;
  std::int64_t finite = 0;    // gave a number
  std::int64_t diverged = 0;  // stopped as diverged, or the number is infinite or NaN
  std::int64_t failed = 0;    // ended with an error
  std::int64_t missing = 0;   // no file, a damaged file, or the number was not measured

  bool whole() const { return expected > 0 && finite == expected; }
  Counts& operator+=(const Counts& other);
};

/// One value of the select axes in one cell, as the choice sees it.
struct Contestant {
  std::vector<double> order;  // what "lowest" compares: the values of the select axes, in order
  bool whole = false;         // every expected replicate gave a finite number
  double score = 0.0;         // mean over the replicates, if whole
  std::vector<double> tie_scores;  // one for each tie-breaking metric; NaN when not measured
};

struct Choice {
  std::optional<std::size_t> chosen;  // index of the contestant; nothing when none is whole
  std::int64_t tied = 0;              // whole contestants with the best score, the chosen one among them
};

/// The contestant that is whole and has the best score; among equals the best tie scores in their order, then the lowest
/// value. One that lacks a replicate is never chosen. Scores within rounding (1e-12 relative) are equal. The order of
/// the contestants does not matter.
Choice choose(const std::vector<Contestant>& contestants, Direction direction,
              const std::vector<Direction>& tie_directions);

}  // namespace phasor::analysis
