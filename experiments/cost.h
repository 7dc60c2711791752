#pragma once

#include <cstdint>

#include "core/graph/launch.h"
#include "experiments/spec.h"

namespace phasor {

/// What an experiment needs, from its shapes alone: a step is walked through without computing anything.
struct Cost {
  double step_flops = 0.0;      // of one update: matrix products and mixers, forward and backward
  double forward_flops = 0.0;   // of the forward pass alone
  Profile step;                 // every launch of one update: calls, operations, bytes; no seconds
  /// What no fusion avoids: parameters, gradients and the optimiser's memory read once and written once, ids and targets
  /// of the batch read once.
  std::int64_t least_step_bytes = 0;
  std::int64_t step_tokens = 0;
  std::int64_t valid_tokens = 0, test_tokens = 0;  // of one evaluation
  std::int64_t parameter_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0, activation_bytes = 0;  // of all lanes and threads
  std::int64_t bytes() const { return parameter_bytes + gradient_bytes + optimizer_bytes + activation_bytes; }
};
Cost count_cost(const ExperimentSpec& spec);

/// Seconds of the whole trial on this machine, with the threads of the spec. Small steps are tried out for about a second;
/// large ones (`measured` false) are the operations at half the speed of a matrix product.
struct TimeEstimate {
  double seconds = 0.0, step_seconds = 0.0;
  bool measured = false;
};
TimeEstimate estimate_time(const ExperimentSpec& spec, const Cost& cost);

}  // namespace phasor
