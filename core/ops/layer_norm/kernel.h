#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

/// Every row holds `groups` vectors of `width` elements (heads); each is normalised by itself.
struct LayerNormForward {
  View x, weight, bias, y;
  View stats;  // [rows, 2 groups]: mean and 1 / deviation of each vector
  std::int64_t rows, groups, width;
  double eps;
};

struct LayerNormBackward {
  View x, weight, stats, dy;
  View dx;              // absent when not wanted
  View dweight, dbias;  // absent when not wanted; always accumulated
  std::int64_t rows, groups, width;
  bool accumulate;  // dx
};

extern const Kernel<LayerNormForward> layer_norm_forward;
extern const Kernel<LayerNormBackward> layer_norm_backward;

}  // namespace phasor::ops
