#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

/// Every row holds `groups` vectors of `width` elements (heads); each is normalised by itself.
struct SumNormForward {
  View x, y, inverse;  // inverse [rows, groups]: 1 / sum
  std::int64_t rows, groups, width;
  double eps;
};

struct SumNormBackward {
  View y, inverse, dy, dx;
  std::int64_t rows, groups, width;
  bool accumulate;
};

extern const Kernel<SumNormForward> sum_norm_forward;
extern const Kernel<SumNormBackward> sum_norm_backward;

}  // namespace phasor::ops
