#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

/// Every row holds `groups` vectors of `width` elements (heads); each is normalised by itself.
struct GatedRmsNormForward {
  View x, gate, weight, y, inverse;  // inverse [rows, groups]: 1 / rms of what is normalised
  std::int64_t rows, groups, width;
  double eps;
  bool silu, norm_first;  // otherwise the gate is a sigmoid, the gate comes first
};

struct GatedRmsNormBackward {
  View x, gate, weight, inverse, dy;
  View dx, dgate;  // absent when not wanted
  View dweight;    // absent when not wanted; always accumulated
  View scratch;    // [2, width]
  std::int64_t rows, groups, width;
  bool silu, norm_first;
  bool accumulate, accumulate_gate;
};

extern const Kernel<GatedRmsNormForward> gated_rms_norm_forward;
extern const Kernel<GatedRmsNormBackward> gated_rms_norm_backward;

}  // namespace phasor::ops
