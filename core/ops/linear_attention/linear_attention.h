#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

struct LinearAttentionResult {
  Tensor o;      // [batch, time, query_heads, value_width]
  Tensor state;  // [batch, heads, key_width, value_width] after the last token; empty when not wanted
  Tensor sum;    // [batch, heads, key_width]: z after the last token; empty when not wanted or not normalised
};

/// Linear attention (Katharopoulos et al. 2020) with one decay per head and step, a = e^{log_decay}:
///     S_t = a_t S_{t-1} + k_t v_t^T,  z_t = a_t z_{t-1} + k_t,  n_t = scale S_t^T q_t
///     o_t = n_t,  or normalised  o_t = n_t / d_t,  d_t = scale z_t.q_t + 1e-10
/// The gradients of S, q, k, v and the decay are those of gla, once for (v, n) and once for values of one and d, with
///     dn = do / d,  dd = -(do.o) / d
/// q [batch, time, query_heads, key_width], k [batch, time, heads, key_width], v [batch, time, heads, value_width] as
/// in gla. log_decay: empty for none; [batch, time, heads], <= 0; or one constant per head, [heads] f64 (RetNet).
/// state_in [batch, heads, key_width, value_width] and sum_in [batch, heads, key_width], or empty for zeros. starts as
/// in gla.
LinearAttentionResult linear_attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v,
                                       const Tensor& log_decay, double scale, bool normalise,
                                       const Tensor& state_in = {}, const Tensor& sum_in = {}, bool want_state = false,
                                       const Tensor& starts = {});

}  // namespace phasor::ops
