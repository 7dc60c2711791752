#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

struct ConvResult {
  Tensor y, state;  // state [batch, C, W], empty when not wanted
};

/// Causal depthwise convolution over time with W taps, optionally followed by silu:
///     z_t = bias + sum_j weight_j x_{t-(W-1)+j},  j = 0..W-1, x_{t<0} from the state or 0;  y = z or silu(z)
///     dz = dy act'(z);  dx_t = sum_j weight_j dz_{t+(W-1)-j};  dweight_j = sum_t dz_t x_{t-(W-1)+j};  dbias = sum_t
///     dz_t
/// x [batch, time, C] or [batch, time, heads, dim] with C = heads * dim; weight [C, W], its last column meets the
/// current sample; bias [C] or empty; state_in [batch, C, W] or empty: the last W inputs, newest last, column 0 is not
/// read. The outgoing state is the incoming one shifted when time < W. Pieces of any length, with the state carried
/// between them, give the outputs and the gradients of the whole; z is computed again in the backward pass.
/// starts: i32 [batch, time] as in SequenceContext, or empty. Inputs of other documents read as zero, and no gradient
/// reaches them; in the outgoing state only inputs of the last document are left.
ConvResult short_conv(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, bool silu,
                      const Tensor& state_in, bool want_state, const Tensor& starts = {});

}  // namespace phasor::ops
