#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/spec/fields.h"

namespace phasor {

/// Learning rate over training (layers.md 13). `warmup`, `decay` and `start` are fractions (of the steps, of the steps, of
/// the peak), `floor` a fraction of the peak, so that sweeping the peak moves all of them.
struct ScheduleOptions {
  std::string name = "constant";  // constant, linear, cosine (warm-up + cosine), cosine_annealing, wsd
  double warmup = 0.0;            // linear, cosine, wsd
  double start = 0.0;             // cosine: rate of the first update
  double floor = 0.0;             // cosine, cosine_annealing, wsd: rate at the end
  double decay = 0.2;             // wsd: share of the steps in the final descent
  std::string shape = "linear";   // wsd: linear, cosine, one_minus_sqrt

  static const std::vector<std::string>& names();
  /// The fields of one schedule, bound to this object.
  FieldList fields_of(const std::string& schedule);
};

/// The same in absolute numbers: what the formulas of layers.md 13 take.
struct Schedule {
  std::string name;
  double peak = 0.0, start = 0.0, end = 0.0;
  double steps = 0.0, warmup = 0.0, decay = 0.0;  // in steps, possibly fractional
  std::string shape = "linear";

  /// Rate of update `done + 1`, when `done` updates are completed.
  double rate(std::int64_t done) const;
};

Schedule make_schedule(const ScheduleOptions&, double peak, std::int64_t steps);

}  // namespace phasor
