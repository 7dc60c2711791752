#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct LinearForward {
  View x, weight, bias, y;
  std::int64_t rows, in, out;
  ProductPrecision precision;
};

struct LinearBackward {
  View x, weight, dy;
  View dx, dweight;  // absent when not wanted
  View dbias;        // absent when not wanted; always accumulated
  std::int64_t rows, in, out;
  bool accumulate, accumulate_weight;
  ProductPrecision precision;
};

extern const Kernel<LinearForward> linear_forward;
extern const Kernel<LinearBackward> linear_backward;

}  // namespace phasor::ops
