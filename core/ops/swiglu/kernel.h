#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct SwigluForward {
  View gate, up, y;
  std::int64_t rows, width;
};

struct SwigluBackward {
  View gate, up, dy;
  View dgate, dup;  // absent when not wanted
  std::int64_t rows, width;
  bool accumulate_gate, accumulate_up;
};

extern const Kernel<SwigluForward> swiglu_forward;
extern const Kernel<SwigluBackward> swiglu_backward;

}  // namespace phasor::ops
