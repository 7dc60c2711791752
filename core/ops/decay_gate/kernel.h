#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

/// Every row holds `groups` (heads) of `width` elements.
struct DecayGateForward {
  View x, bias, log_rate, y;
  std::int64_t rows, groups, width;
};

struct DecayGateBackward {
  View x, bias, log_rate, y, dy;
  View dx, dbias, dlog_rate;  // each absent when not wanted; the last two are added to
  std::int64_t rows, groups, width;
  bool accumulate;
};

extern const Kernel<DecayGateForward> decay_gate_forward;
extern const Kernel<DecayGateBackward> decay_gate_backward;

}  // namespace phasor::ops
