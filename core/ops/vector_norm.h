#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

// What l2_norm and sum_norm share: y = r x for every vector x of the last axis, with one number r(x) that is kept for the
// way back.

namespace phasor {
class Tape;
class Tensor;
}  // namespace phasor

namespace phasor::ops {

/// Every row holds `groups` vectors of `width` elements (heads); each is normalised by itself.
struct VectorNormForward {
  View x, y, inverse;  // inverse [rows, groups]: r
  std::int64_t rows, groups, width;
  double eps;
};

struct VectorNormBackward {
  View y, inverse, dy, dx;
  std::int64_t rows, groups, width;
  bool accumulate;
};

/// The op of that name with these kernels, which outlive the tape. x [rows.., n] or [batch, time, heads, n]. Result: shape
/// of x.
Tensor vector_norm(Tape& tape, const Tensor& x, double eps, const char* name, const Kernel<VectorNormForward>& forward,
                   const Kernel<VectorNormBackward>& backward);

}  // namespace phasor::ops
