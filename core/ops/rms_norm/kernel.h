#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

/// Every row holds `groups` vectors of `width` elements (heads); each is normalised by itself. The weight of vector g
/// begins at g * weight_step: 0 when the vectors of a row share it, else `width`.
struct RmsNormForward {
  View x, weight, y, inverse;  // inverse [rows, groups]: 1 / rms
  std::int64_t rows, groups, width, weight_step;
  double eps;
};

struct RmsNormBackward {
  View x, weight, inverse, dy;
  View dx;       // absent when not wanted
  View dweight;  // absent when not wanted; always accumulated
  std::int64_t rows, groups, width, weight_step;
  bool accumulate;  // dx
};

extern const Kernel<RmsNormForward> rms_norm_forward;
extern const Kernel<RmsNormBackward> rms_norm_backward;

}  // namespace phasor::ops
