#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

/// Log-decay of a head from a rate of its own and a step that depends on the input (Mamba, Gated DeltaNet):
///     s = log(1 + e^{x + bias}),  y = -e^{log_rate_h} s
///     dx = -dy e^{log_rate_h} sig(x + bias);  dbias = sum over rows of dx;  dlog_rate_h = sum over rows (and n) of dy
///     y
/// x [batch, time, heads], or [batch, time, heads, n] for a decay per channel; log_rate [heads]; bias as many elements
/// as a row of x. Result: shape of x, not above 0.
Tensor decay_gate(Tape& tape, const Tensor& x, const Tensor& bias, const Tensor& log_rate);

}  // namespace phasor::ops
