#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/selection/statistics.h"
#include "results/record.h"

namespace phasor::analysis {

/// Whether more or less of a metric is better.
enum class Direction { minimise, maximise };
const char* to_text(Direction direction);

/// From the last word of the name: accuracies maximise; loss, perplexity, bits_per_byte and steps_to_solve minimise. Nothing for a name
/// that is none of these.
std::optional<Direction> direction_of(const std::string& metric);

/// Perplexities are averaged on the logarithmic scale: there their mean is the perplexity of the mean loss.
Scale scale_of(const std::string& metric);

/// 0 to 1 for accuracies, from 1 for perplexities, from 0 for all others.
Bounds bounds_of(const std::string& metric);

/// A series of evaluations: `metric` of `split` on `slice` (a length; -1 = over all slices).
struct Series {
  std::string split, metric;
  std::int64_t slice = -1;

  bool operator==(const Series&) const = default;
  auto operator<=>(const Series&) const = default;
};
std::string to_text(const Series& series);       // "valid.sequence_accuracy@32", "test.loss"
std::string slice_to_text(std::int64_t slice);   // "32", "all"
std::string described(const Series& series);     // "valid.sequence_accuracy@32", "test.loss over all lengths"

/// Which evaluation of a series stands for the trial.
struct At {
  enum class Rule { final, best, mean_last };
  Rule rule = Rule::final;
  std::int64_t k = 1;  // of mean_last
};
std::string to_text(const At& at);  // "final", "best", "mean_last_3"

/// One number of one trial.
struct Reading {
  double value = 0.0;      // may be infinite or NaN
  std::int64_t step = 0;   // after which it was measured; the last one of a mean
  bool too_few = false;    // a mean over the last k was asked for, and there are fewer evaluations than k
};

/// Reads one number from a trial's evaluations, which may stand in any order; nothing when the series is not there.
/// `best` looks at finite values only and takes the earliest of equals.
std::optional<Reading> read_metric(const std::vector<results::EvalPoint>& evals, const Series& series, const At& at,
                                   Direction direction);

}  // namespace phasor::analysis
