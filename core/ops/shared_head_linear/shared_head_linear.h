#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

/// One affine map for every head:
///     y_h = x_h W^T + b
///     dx_h = dy_h W;  dW = sum over rows and heads of dy_h^T x_h;  db = sum over rows and heads of dy_h
/// x [batch, time, heads, in], weight [out, in], bias [out] or empty; result [batch, time, heads, out].
Tensor shared_head_linear(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace phasor::ops
