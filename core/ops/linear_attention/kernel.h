#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

/// y[r, h, i] = from[r, h], or fixed[h], or the constant.
struct SpreadForward {
  View from;   // rows of `heads`; absent: see `fixed`
  View fixed;  // one row of `heads`, f64 in both precisions; absent: the constant
  View y;
  std::int64_t rows, heads, width;
  double constant;
};

struct SpreadBackward {
  View dy, dfrom;
  std::int64_t rows, heads, width;
  bool accumulate;
};

/// y[r, h, i] = x[r, h, i] / (d[r, h] + eps).
struct QuotientForward {
  View x, d, y;
  std::int64_t rows, heads, width;
  double eps;
};

struct QuotientBackward {
  View y, d, dy;
  View dx, dd;  // dx absent when not wanted
  std::int64_t rows, heads, width;
  double eps;
  bool accumulate;  // dx
};

extern const Kernel<SpreadForward> spread_forward;
extern const Kernel<SpreadBackward> spread_backward;
extern const Kernel<QuotientForward> quotient_forward;
extern const Kernel<QuotientBackward> quotient_backward;

}  // namespace phasor::ops
