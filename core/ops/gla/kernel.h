#pragma once

#include <cstdint>

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

/// Kernels work on vectors of `gla_lane` elements at most; widths are padded with zeros to a multiple of it.
constexpr std::int64_t gla_lane = 8;
constexpr std::int64_t gla_padded(std::int64_t width) { return (width + gla_lane - 1) / gla_lane * gla_lane; }

struct GlaSizes {
  std::int64_t batch, time, heads, group;  // query heads = heads * group
  std::int64_t key_width, value_width, chunk;

  constexpr std::int64_t keys() const { return gla_padded(key_width); }
  constexpr std::int64_t values() const { return gla_padded(value_width); }
  constexpr std::int64_t state() const { return keys() * values(); }
  constexpr std::int64_t chunks() const { return (time + chunk - 1) / chunk; }
  /// Elements of scratch: one head's chunk, packed, and one state.
  constexpr std::int64_t forward_scratch() const { return chunk * (3 * keys() + 2 * values()) + state(); }
  constexpr std::int64_t backward_scratch() const {
    return chunk * (6 * keys() + 3 * values() + 2 * gla_lane * gla_lane) + state();
  }
};

struct GlaForward {
  View q, k, v, log_gate;  // rows [batch * time] of [heads, width]
  View state_in;           // rows [batch * heads] of [key_width, value_width]; absent: zeros
  View o;
  View state_out;  // absent when not wanted
  View starts;     // rows [batch * heads] of [chunks, keys, values]: the state before each chunk; absent: not kept
  View scratch;    // one row of forward_scratch()
  GlaSizes sizes;
  double scale;
};

struct GlaBackward {
  View q, k, v, log_gate, starts;
  View do_;                                           // absent when only the state was used
  View dstate_out;                                    // absent when no gradient arrived
  View scratch;                                       // one row of backward_scratch()
  View dq, dk, dv, dlog_gate, dstate_in;              // each absent when not wanted
  bool add_q, add_k, add_v, add_log_gate, add_state;  // add to what is there; otherwise overwrite
  GlaSizes sizes;
  double scale;
};

extern const Kernel<GlaForward> gla_forward;
extern const Kernel<GlaBackward> gla_backward;

}  // namespace phasor::ops
