#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

/// Every row holds `groups` vectors of `width` elements (heads); each is normalised by itself.
struct RmsNormForward {
  View x, weight, y, inverse;  // inverse [rows, groups]: 1 / rms
  std::int64_t rows, groups, width;
  double eps;
};

struct RmsNormBackward {
  View x, weight, inverse, dy;
  View dx;       // absent when not wanted
  View dweight;  // absent when not wanted; always accumulated
  std::int64_t rows, groups, width;
  bool accumulate;  // dx
};

extern const Kernel<RmsNormForward> rms_norm_forward;
extern const Kernel<RmsNormBackward> rms_norm_backward;

}  // namespace phasor::ops
