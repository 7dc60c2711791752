#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

/// A matrix of its own for every head: y_h = x_h W_h
///     dx_h = dy_h W_h^T;  dW_h = sum over rows of x_h^T dy_h
/// x [batch, time, H, I], weight [H, I, R]; result [batch, time, H, R].
Tensor head_linear(Tape& tape, const Tensor& x, const Tensor& weight);

}  // namespace phasor::ops
