#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

/// Divides the vectors of the last axis, whose elements are not negative, by their sum:
///     r = 1 / (sum_i x_i + eps),  y = r x;  dx = r (dy - sum_i(y_i dy_i))
/// x [rows.., n] or [batch, time, heads, n]. Result: shape of x.
Tensor sum_norm(Tape& tape, const Tensor& x, double eps);

}  // namespace phasor::ops
