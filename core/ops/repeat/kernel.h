#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

/// Every row holds `groups` vectors (heads): of `width` elements in the short one, of times * width in the long one.
struct RepeatForward {
  View x, y;
  std::int64_t rows, groups, width, times;
};

struct RepeatBackward {
  View dy, dx;
  std::int64_t rows, groups, width, times;
  bool accumulate;
};

extern const Kernel<RepeatForward> repeat_forward;
extern const Kernel<RepeatBackward> repeat_backward;

}  // namespace phasor::ops
