#pragma once

#include <algorithm>
#include <cstdint>

#include "core/graph/launch.h"
#include "core/ops/tile_stride.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct DeltaRuleSizes {
  std::int64_t batch, time, heads, group;  // value heads = heads * group
  std::int64_t key_width, value_width, chunk;

  constexpr std::int64_t value_heads() const { return heads * group; }
  constexpr std::int64_t chunks() const { return (time + chunk - 1) / chunk; }
  /// Elements of packed matrices: rows of keys, of values, of a chunk's steps. A state has rows of values.
  constexpr std::int64_t keys(std::int64_t rows) const { return rows * tile::stride(key_width); }
  constexpr std::int64_t values(std::int64_t rows) const { return rows * tile::stride(value_width); }
  constexpr std::int64_t steps(std::int64_t rows) const { return rows * tile::stride(chunk); }
  constexpr std::int64_t state() const { return values(key_width); }
  constexpr std::int64_t forward_scratch() const {
    return keys(2 * chunk) + values(3 * chunk) + steps(3 * chunk + key_width + 3) + state() + key_width;
  }
  /// Elements of a value head's D_t^T k_t, and of what the blocks of a device's kernel have of its decays' gradients.
  constexpr std::int64_t device_slopes() const { return time * (value_width + (key_width + 15) / 16); }
  constexpr std::int64_t backward_scratch() const {
    return keys(4 * chunk + 2 * value_width) + values(4 * chunk) + steps(5 * chunk + key_width + value_width + 8) +
           state() + key_width;
  }
};

/// Of the chunkwise form of a device with products in bf16 (chunk_cuda.h): its memory, in elements of f32 for each value
/// head. Vectors and states are rows of bf16, padded to eight.
struct DeltaRuleChunks {
  static constexpr std::int64_t steps = 64;  // of a chunk
  std::int64_t time, keys, values, tiles;    // tiles: of 64 keys

  constexpr explicit DeltaRuleChunks(const DeltaRuleSizes& s)
      : time(s.time),
        keys((s.key_width + 7) / 8 * 8),
        values((s.value_width + 7) / 8 * 8),
        tiles((s.key_width + 63) / 64) {}

  constexpr std::int64_t count() const { return (time + steps - 1) / steps; }
  constexpr std::int64_t scores() const { return count() * steps * steps; }  // two matrices of bf16 for each chunk
  constexpr std::int64_t vectors() const { return time * values / 2; }
  constexpr std::int64_t states() const { return count() * values * keys / 2; }
  /// y_t, the gradient of the state behind each chunk, and of each tile of keys sums of products for the decays: one for
  /// each step, one for each chunk.
  constexpr std::int64_t slopes() const { return vectors() + states() + (tiles * (time + count()) + 3) / 4 * 4; }
};

struct DeltaRuleForward {
  View q, k, v;          // rows [batch * time] of [heads, width]
  View beta, log_decay;  // rows [batch * time] of [value_heads]; absent: ones, zeros
  View state_in;         // rows [batch * value_heads] of [key_width, value_width]; absent: zeros
  View starts;           // i32 rows [batch] of [time]; absent: one document per row
  View o;
  View state_out;  // absent when not wanted
  View kept;       // rows [batch * value_heads] of [chunks, state]: the state before each chunk; absent: not kept
  View errors;     // rows [batch * value_heads] of [time, packed row of values]: e_t; absent: not kept
  View scratch;    // one row of forward_scratch()
  View scores;     // rows of DeltaRuleChunks::scores(); then kept and errors are rows of its states() and vectors()
  DeltaRuleSizes sizes;
  double scale;
  ProductPrecision precision;  // bf16: the chunkwise form of a device; the processor computes in full
};

struct DeltaRuleBackward {
  View q, k, beta, log_decay, starts, kept, errors;
  View d_o;                                                      // absent when only the state was used
  View d_state;                                                  // absent when no gradient arrived
  View scratch;                                                  // one row of backward_scratch()
  View slopes;                                                   // rows of device_slopes(); on a device only
  View scores;                                                   // as forward; then rows of DeltaRuleChunks::slopes()
  View dq, dk, dv, dbeta, dlog_decay, dstate_in;                 // each absent when not wanted
  bool add_q, add_k, add_v, add_beta, add_log_decay, add_state;  // add to what is there; otherwise overwrite
  DeltaRuleSizes sizes;
  double scale;
  ProductPrecision precision;  // as forward
};

extern const Kernel<DeltaRuleForward> delta_rule_forward;
extern const Kernel<DeltaRuleBackward> delta_rule_backward;

}  // namespace phasor::ops
