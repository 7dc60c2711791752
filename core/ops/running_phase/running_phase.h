#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

struct Phase {
  Tensor angle;  // [batch, time, H, R]
  Tensor state;  // [batch, H, R] f64, empty when not wanted
};

/// Running phase and the angle it gives (Selective RoPE; spec 3.3 steps 6 and 7):
///     Phi_t = Phi_{t-1} + f_t, Phi_{-1} from the state or 0;  angle_t = tau * Phi_t, reduced to [-pi, pi]
///     g_t = tau dangle_t;  df_t = sum_{u >= t} g_u + dstate;  dstate_in = df_0;  dtau_i = sum_{b,t,h} Phi dangle
/// increments f [batch, time, H, R]; temperature tau [R], shared by heads; state_in [batch, H, R] f64 or empty. Phi is
/// an unbounded sum: it is carried, scaled and reduced in double in every precision, and the state is Phi itself,
/// unscaled. starts: i32 [batch, time] as in SequenceContext, or empty; where a document begins, Phi_{t-1} counts as zero.
Phase running_phase(Tape& tape, const Tensor& increments, const Tensor& temperature, const Tensor& state_in,
                    bool want_state, const Tensor& starts = {});

}  // namespace phasor::ops
