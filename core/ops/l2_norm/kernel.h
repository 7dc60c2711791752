#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

/// Every row holds `groups` vectors of `width` elements (heads); each is normalised by itself.
struct L2NormForward {
  View x, y, inverse;  // inverse [rows, groups]: 1 / length
  std::int64_t rows, groups, width;
  double eps;
};

struct L2NormBackward {
  View y, inverse, dy, dx;
  std::int64_t rows, groups, width;
  bool accumulate;
};

extern const Kernel<L2NormForward> l2_norm_forward;
extern const Kernel<L2NormBackward> l2_norm_backward;

}  // namespace phasor::ops
