#pragma once

#include <cstdint>

#include "core/graph/launch.h"
#include "core/ops/tile_stride.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct AttentionSizes {
  std::int64_t batch, time, keys, heads, group;  // query heads = heads * group; keys >= time
  std::int64_t key_width, value_width;
  std::int64_t window;  // 0: none
  bool causal;

  static constexpr std::int64_t edge = 64;  // queries and keys of one tile of scores
  constexpr std::int64_t query_heads() const { return heads * group; }
  constexpr std::int64_t past() const { return keys - time; }
  constexpr std::int64_t key_tiles() const { return (keys + edge - 1) / edge; }
  constexpr std::int64_t query_tiles() const { return (time + edge - 1) / edge; }
  /// Elements of packed tiles: rows of `width`, or its transpose.
  constexpr std::int64_t rows(std::int64_t width) const { return edge * tile::stride(width); }
  constexpr std::int64_t columns(std::int64_t width) const { return width * tile::stride(edge); }
  constexpr std::int64_t forward_scratch() const {
    return key_tiles() * (columns(key_width) + rows(value_width)) + rows(key_width) + rows(edge) + rows(value_width);
  }
  constexpr std::int64_t backward_scratch() const {
    const std::int64_t whole = query_tiles() * (2 * rows(key_width) + rows(value_width) + 2 * edge);
    const std::int64_t keys_of_tile = columns(key_width) + columns(value_width) + 2 * rows(key_width);
    return whole + keys_of_tile + rows(value_width) + 2 * rows(edge) + edge;
  }
  /// Elements in bf16 of packed copies for a library: q, k, v, o; of the backward pass also their gradients.
  constexpr std::int64_t copies() const {
    return batch * (time * query_heads() + keys * heads) * (key_width + value_width);
  }
};

struct AttentionForward {
  View q, k, v;    // rows [batch * time] or [batch * keys] of [heads, width]
  View log_decay;  // rows [batch * keys] of [query_heads]; absent: none
  View slopes;     // f64 [query_heads]; absent: none
  View starts;     // i32 rows [batch] of [time]; absent: none
  View o, lse;     // lse: rows [batch * query_heads] of [time]
  View scratch;    // one row of forward_scratch()
  View curve;      // f64 [keys]: scratch, when there is a bias
  View copies;     // copies() elements in bf16: scratch; present: a library does it (a device only)
  AttentionSizes sizes;
  double scale;
  ProductPrecision precision;  // of a device; the processor computes in full
};

struct AttentionBackward {
  View q, k, v, log_decay, slopes, starts, o, lse, d_o;
  View scratch;                                   // one row of backward_scratch()
  View curve;                                     // f64 [2 * keys]
  View copies;                                    // 2 copies() elements in bf16, as in the forward pass
  View dq, dk, dv, dlog_decay;                    // each absent when not wanted
  bool add_q, add_k, add_v, add_log_decay;        // add to what is there; otherwise overwrite
  AttentionSizes sizes;
  double scale;
  ProductPrecision precision;  // of a device; the processor computes in full
};

extern const Kernel<AttentionForward> attention_forward;
extern const Kernel<AttentionBackward> attention_backward;

}  // namespace phasor::ops
