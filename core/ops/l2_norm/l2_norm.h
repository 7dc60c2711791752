#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

/// Scales the vectors of the last axis, of size n, to unit length:
///     r = (sum_i x_i^2 + eps)^(-1/2),  y = r x;  dx = r (dy - y sum_i(y_i dy_i))
/// eps is added to the sum of squares (not to their mean), under the root. x [rows.., n] or [batch, time, heads, n].
/// Result: shape of x.
Tensor l2_norm(Tape& tape, const Tensor& x, double eps);

}  // namespace phasor::ops
