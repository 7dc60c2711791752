#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

/// Picks rows, for instance the scored positions in front of the head:
///     y[n] = x[index[n]], a row of zeros where index[n] < 0 (padding up to a fixed capacity)
///     dx[r] = sum of dy[n] over all n with index[n] = r, in the order of n
/// x [batch, time, dim] or [rows, dim], rows counted over batch and time; index i32 [count], each below the number of
/// rows (builds with assertions check it). An index may repeat. Result [count, dim].
Tensor gather_rows(Tape& tape, const Tensor& x, const Tensor& index);

}  // namespace phasor::ops
