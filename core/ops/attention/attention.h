#pragma once

#include <cstdint>

#include "core/graph/tape.h"

namespace phasor::ops {

struct AttentionOptions {
  double scale = 1.0;       // of the products of queries and keys, not of the biases
  bool causal = true;       // a query sees no later key
  std::int64_t window = 0;  // > 0: only the last `window` keys, its own included
  Tensor slopes;            // f64 [query_heads], a Table (ALiBi); or empty; causal only
};

/// Softmax attention (Vaswani et al. 2017). q [batch, time, query_heads, key_width]; k [batch, keys, heads, key_width]
/// and v [batch, keys, heads, value_width], where keys - time earlier tokens (a cache) stand before those of the
/// queries: query t is key i = keys - time + t. query_heads is a multiple of heads, and query head h reads head
/// h / (query_heads / heads). With c the running sum of log_decay over the keys:
///     z_ij = scale q_i . k_j + (c_i - c_j) - slope (i - j),   p_ij = softmax_j(z_ij),   o_i = sum_j p_ij v_j
/// over the j that i sees: j <= i when causal, i - j < window, and j >= keys - time + starts[t]. Its own key is always
/// among them. log_decay [batch, keys, query_heads], <= 0 and finite, or empty (forgetting attention, Lin et al. 2025);
/// starts i32 [batch, time] (SequenceContext::starts) or empty. Result: [batch, time, query_heads, value_width].
///
/// With dO the gradient of o:
///     dp_ij = dO_i . v_j,  dz_ij = p_ij (dp_ij - dO_i . o_i),  dv_j = sum_i p_ij dO_i
///     dq_i = scale sum_j dz_ij k_j,  dk_j = scale sum_i dz_ij q_i,  dlog_decay_u = sum_{j < u <= i} dz_ij
/// Where the stream says library_attention, in bf16, a device's library does it if it can: without log_decay, slopes, starts and
/// window, with widths that are multiples of 8 up to 256 and, when causal, as many keys as queries. It rounds the operands, o, dO
/// and the results to bf16.
///
/// The scores are never held as a whole: both passes go through tiles of them, and only o and the logarithm of every
/// row's sum are kept (Dao 2023). Keys that a query does not see add exactly nothing, so its output keeps its bits
/// whatever they hold, as long as they are finite.
Tensor attention(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
                 const Tensor& log_decay = {}, const Tensor& starts = {});

}  // namespace phasor::ops
