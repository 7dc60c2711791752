#pragma once

#include <cstdint>

#include "core/graph/tape.h"

namespace phasor::ops {

struct DeltaRuleResult {
  Tensor o;      // [batch, time, value_heads, value_width]
  Tensor state;  // [batch, value_heads, key_width, value_width] after the last token; empty when not wanted
};

/// The delta rule (Schlag et al. 2021; Yang et al. 2024, 2025): the state forgets, then takes a step that corrects what
/// it reads at the key,
///     S'_t = e^{g_t} S_{t-1},  e_t = v_t - S'_t^T k_t,  S_t = S'_t + beta_t k_t e_t^T,  o_t = scale * S_t^T q_t
/// q and k [batch, time, heads, key_width]; v [batch, time, value_heads, value_width]; beta and log_decay (g <= 0)
/// [batch, time, value_heads]; an empty beta counts as 1, an empty log_decay as 0. value_heads is a multiple of heads:
/// value head h reads query and key head h / (value_heads / heads), and each has a state of its own: state_in [batch,
/// value_heads, key_width, value_width], or empty for zeros.
///
/// With D_t the gradient of S_t from o_t, .., o_T and the last state, and d_t = beta_t D_t^T k_t that of e_t:
///     dq_t = scale S_t dO_t,  dv_t = d_t,  dbeta_t = e_t . (D_t^T k_t),  dk_t = beta_t D_t e_t - S'_t d_t
///     D'_t = D_t - k_t d_t^T,  dg_t = <S'_t, D'_t>,  D_{t-1} = e^{g_t} D'_t + scale q_{t-1} dO_{t-1}^T,  dstate_in =
///     D_0
///
/// starts: i32 [batch, time] as in SequenceContext, or empty. Where starts[b, t] == t a document begins: S_{t-1} counts
/// as zero and D stops there; the last state is that of the last document.
///
/// Both passes work on chunks of `chunk` steps (WY form, docs/delta.md), counted from the beginning of a document; 0
/// takes their length from the widths. Only e^{g_t} and products of such are formed, so every log_decay <= 0 is safe,
/// down to minus infinity. A step with beta |k|^2 in [0, 2] does not lengthen the state; beyond that it grows, as it
/// has to.
DeltaRuleResult delta_rule(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& beta,
                           const Tensor& log_decay, double scale, const Tensor& state_in = {}, bool want_state = false,
                           std::int64_t chunk = 0, const Tensor& starts = {});

}  // namespace phasor::ops
