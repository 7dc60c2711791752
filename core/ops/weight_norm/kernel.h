#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

/// Rows: `groups` is 1, `length` the number of rows, each a vector of `width`. Columns: `groups` matrices of `length`
/// rows and `width` columns. One scale per group.
struct WeightNormForward {
  View w, scale, y;
  View norm;  // rows: [length, 1]; columns: [groups, width]
  std::int64_t groups, length, width;
};

struct WeightNormBackward {
  View w, scale, norm, dy;
  View dw;      // absent when not wanted
  View dscale;  // absent when not wanted; always accumulated
  View dots;    // columns: scratch [1, width]
  std::int64_t groups, length, width;
  bool accumulate;  // dw
};

extern const Kernel<WeightNormForward> weight_norm_rows_forward, weight_norm_columns_forward;
extern const Kernel<WeightNormBackward> weight_norm_rows_backward, weight_norm_columns_backward;

}  // namespace phasor::ops
