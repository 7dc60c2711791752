#pragma once

#include <cstdint>

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

/// Kernels work on blocks of at most `gla_lane` neighbouring channels; widths are padded with zeros to a multiple of
/// it.
constexpr std::int64_t gla_lane = 8;
constexpr std::int64_t gla_padded(std::int64_t width) { return (width + gla_lane - 1) / gla_lane * gla_lane; }
/// Products in bf16 on a device take 16 channels at a time.
constexpr std::int64_t gla_strips(std::int64_t width) { return (width + 15) / 16 * 16; }

struct GlaSizes {
  std::int64_t batch, time, heads, group;  // query heads = heads * group
  std::int64_t key_width, value_width, chunk;

  constexpr std::int64_t keys() const { return gla_padded(key_width); }
  constexpr std::int64_t values() const { return gla_padded(value_width); }
  constexpr std::int64_t state() const { return keys() * values(); }
  constexpr std::int64_t chunks() const { return (time + chunk - 1) / chunk; }
  /// Elements of the blocks of one chunk. A gap of one line keeps neighbouring blocks in different sets of the L1
  /// cache.
  constexpr std::int64_t block(std::int64_t lanes) const { return chunk * lanes + gla_lane; }
  constexpr std::int64_t blocks(std::int64_t padded, std::int64_t lanes) const { return padded / lanes * block(lanes); }
  /// Elements of scratch that suffice for every precision: the blocks of one head's chunk, one state, and for the
  /// backward pass two tiles through a chunk.
  constexpr std::int64_t forward_scratch() const {
    return 3 * blocks(keys(), gla_lane / 2) + 2 * blocks(values(), gla_lane / 2) + state();
  }
  constexpr std::int64_t backward_scratch() const {
    return 5 * blocks(keys(), gla_lane / 2) + 3 * blocks(values(), gla_lane / 2) + 2 * chunk * gla_lane * gla_lane +
           state();
  }
  /// Elements of f32 for the states of one head in bf16, one for each chunk.
  constexpr std::int64_t half_states() const { return chunks() * gla_strips(key_width) * gla_strips(value_width) / 2; }
};

/// Whether a device takes chunks of `gla_chunk_steps` in bf16 (chunk_cuda.h) and not the recurrence in f32: not a few
/// new tokens, and heads that its shared memory holds.
constexpr std::int64_t gla_chunk_steps = 64;
constexpr bool gla_in_chunks(ProductPrecision precision, const GlaSizes& s) {
  constexpr std::int64_t fewest_steps = 17, widest = 256;
  return precision == ProductPrecision::bf16 && s.time >= fewest_steps && s.key_width <= widest &&
         s.value_width <= widest;
}

struct GlaForward {
  View q, k, v, log_gate;  // rows [batch * time] of [heads, width]
  View state_in;           // rows [batch * heads] of [key_width, value_width]; absent: zeros
  View starts;             // i32 rows [batch] of [time]; absent: one document per row
  View o;
  View state_out;  // absent when not wanted
  View kept;       // rows [batch * heads] of [chunks, keys, values]: the state before each chunk; absent: not kept.
                   // In chunks rows of half_states(), never absent
  View decays;     // rows [batch * heads] of [chunks, blocks of keys]: e^{log_gate}; absent: not kept, or in chunks
  View scratch;    // one row of forward_scratch()
  GlaSizes sizes;
  double scale;
  ProductPrecision precision;  // of a device; the processor computes in full
};

struct GlaBackward {
  View q, k, v, starts, kept, decays;
  View log_gate;                                      // in chunks only
  View d_o;                                           // absent when only the state was used
  View d_state;                                       // absent when no gradient arrived
  View scratch;                                       // one row of backward_scratch()
  View slopes;                                        // in chunks: as kept, gradients of the states behind each chunk
  View dq, dk, dv, dlog_gate, dstate_in;              // each absent when not wanted
  bool add_q, add_k, add_v, add_log_gate, add_state;  // add to what is there; otherwise overwrite
  GlaSizes sizes;
  double scale;
  ProductPrecision precision;  // of a device; the processor computes in full
};

extern const Kernel<GlaForward> gla_forward;
extern const Kernel<GlaBackward> gla_backward;

}  // namespace phasor::ops
