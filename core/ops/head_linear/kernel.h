#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct HeadLinearForward {
  View x, weight, y;  // weight has heads * in rows of out elements
  std::int64_t rows, heads, in, out;
  ProductPrecision precision;
};

struct HeadLinearBackward {
  View x, weight, dy;
  View dx;       // absent when not wanted
  View dweight;  // absent when not wanted; always accumulated
  std::int64_t rows, heads, in, out;
  bool accumulate;  // dx
  ProductPrecision precision;
};

extern const Kernel<HeadLinearForward> head_linear_forward;
extern const Kernel<HeadLinearBackward> head_linear_backward;

}  // namespace phasor::ops
