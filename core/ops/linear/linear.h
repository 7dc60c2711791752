#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

/// Affine map of every row:
///     y = x W^T + b
///     dx = dy W;  dW = dy^T x (summed over rows);  db = sum over rows of dy
/// x [rows.., in]; of [batch, time, heads, head_dim] the last two axes together are `in`. weight [out, in]; bias [out],
/// or empty for none. Result [rows.., out]: [batch, time, out] or [rows, out].
Tensor linear(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace phasor::ops
