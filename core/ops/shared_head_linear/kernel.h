#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct SharedHeadLinearForward {
  View x, weight, bias, y;
  std::int64_t rows, heads, in, out;
  ProductPrecision precision;
};

struct SharedHeadLinearBackward {
  View x, weight, dy;
  View dx;              // absent when not wanted
  View dweight, dbias;  // absent when not wanted; always accumulated
  std::int64_t rows, heads, in, out;
  bool accumulate;  // dx
  ProductPrecision precision;
};

extern const Kernel<SharedHeadLinearForward> shared_head_linear_forward;
extern const Kernel<SharedHeadLinearBackward> shared_head_linear_backward;

}  // namespace phasor::ops
