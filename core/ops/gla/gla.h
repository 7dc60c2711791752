#pragma once

#include <cstdint>

#include "core/graph/tape.h"

namespace phasor::ops {

struct GlaResult {
  Tensor o;      // [batch, time, query_heads, value_width]
  Tensor state;  // [batch, heads, key_width, value_width] after the last token; empty when not wanted
};

/// Gated linear attention (Yang et al. 2023): a linear recurrence with one decay per key channel and step,
///     S_t = diag(e^{g_t}) S_{t-1} + k_t v_t^T,   o_t = scale * S_t^T q_t,   g = log_gate <= 0
/// q [batch, time, query_heads, key_width]; k and log_gate [batch, time, heads, key_width]; v [batch, time, heads,
/// value_width]; query_heads is a multiple of heads, and query head h reads head h / (query_heads / heads), so a state
/// belongs to a key-value head: state_in [batch, heads, key_width, value_width], or empty for zeros.
///
/// With dO the gradient of o and D_T that of the last state (time runs backwards):
///     D_t = diag(e^{g_{t+1}}) D_{t+1} + scale q_t dO_t^T
///     dq_t = scale S_t dO_t,  dk_t = D_t v_t,  dv_t = D_t^T k_t,  dg_t = rowsum(e^{g_t} S_{t-1} (.) D_t)
///     dstate_in = diag(e^{g_1}) D_1
/// dk, dv, dg and dstate_in are summed over the query heads that share a head.
///
/// starts: i32 [batch, time] as in SequenceContext, or empty. Where starts[b, t] == t a document begins: S_{t-1} counts as
/// zero and D stops there, so that nothing crosses, not even a NaN; the last state is that of the last document.
///
/// Only e^{g_t} is ever formed, so every log_gate <= 0 is safe, down to minus infinity. Nothing about the outputs
/// depends on `chunk` or on later tokens, and a sequence cut in pieces gives the bits of the whole. `chunk` is the
/// number of steps between the states that are kept for the backward pass; 0 chooses it from the shapes. docs/gla.md
/// says why the CPU runs the recurrence itself and not the chunkwise form. The exception is a device with products in
/// bf16: there it is the chunkwise form, whose operands are rounded, in which both promises hold up to that rounding and
/// only finite numbers stay within their document.
GlaResult gla(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& log_gate, double scale,
              const Tensor& state_in = {}, bool want_state = false, std::int64_t chunk = 0, const Tensor& starts = {});

}  // namespace phasor::ops
