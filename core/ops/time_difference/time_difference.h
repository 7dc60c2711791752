#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

struct Difference {
  Tensor y, state;  // state [batch, C], empty when not wanted
};

/// First difference over time: y_t = x_t - x_{t-1}, x_{-1} from the state or 0. The outgoing state is the last row of
/// x.
///     dx_t = dy_t - dy_{t+1}, the last step without the second term and with dstate;  dstate_in = -dy_0
/// x [batch, time, C] or [batch, time, heads, dim] with C = heads * dim; state_in [batch, C] or empty. starts:
/// i32 [batch, time] as in SequenceContext, or empty; where a document begins, x_{t-1} counts as zero.
Difference time_difference(Tape& tape, const Tensor& x, const Tensor& state_in, bool want_state,
                           const Tensor& starts = {});

}  // namespace phasor::ops
