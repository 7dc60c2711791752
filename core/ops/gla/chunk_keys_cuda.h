#pragma once

#include "core/ops/gla/chunk_cuda.h"

// dq, dk and dlog_gate in the chunkwise form. With P_ij = dO_i . v_j, S the state before the chunk and D the gradient
// of the one behind it,
//     dq_i = scale (e^{G_i} S dO_i + sum over j <= i of P_ij e^{G_i - G_j} k_j)
//     dk_j = e^{G_C - G_j} D v_j + scale sum over i >= j of P_ij e^{G_i - G_j} q_i
// as sums over strips, to which a channel's decay between strips is applied on the way. Within a strip a thread has a
// channel, in f32. A gate gets what crosses it: from steps and states before it to steps and states behind it.

namespace phasor::ops {

/// Shared memory of a block: the tiles take the place of operands when the products are done.
struct KeyMemory {
  static constexpr int tile_stride = part_width + 4;
  int stride;                  // values apart, padded
  Bf16 *query, *key;           // [64][part_stride]: since the beginning, and until the end, of their strips
  Bf16 *dout, *value, *state;  // [64][stride]: dO, v; S and then D by keys
  float *from_before, *from_later, *from_behind;  // [64][tile_stride]: what dq, dk and, by D, dk again are made of
  float* decay;                                   // [strips][part_width]
  float* product;                                 // [strips][16 j][16 i]: P within strips
  float* across;                                  // [part_width]: what crosses the whole chunk

  static constexpr int region(int stride) {  // in halves
    return cuda::chunk_steps * std::max(stride, 2 * tile_stride);
  }
  static constexpr std::size_t bytes(int width) {
    const int halves = 2 * cuda::chunk_steps * part_stride + 3 * region(cuda::chunk_stride(width));
    const int floats = (strips + 1) * part_width + strips * strip_rows * strip_rows;
    return static_cast<std::size_t>(halves) * sizeof(Bf16) + static_cast<std::size_t>(floats) * sizeof(float);
  }
  __device__ explicit KeyMemory(int width) : stride(cuda::chunk_stride(width)) {
    query = cuda::shared_memory<Bf16>();
    key = query + cuda::chunk_steps * part_stride;
    dout = key + cuda::chunk_steps * part_stride;
    value = dout + region(stride);
    state = value + region(stride);
    from_before = reinterpret_cast<float*>(dout);
    from_later = reinterpret_cast<float*>(value);
    from_behind = reinterpret_cast<float*>(state);
    decay = reinterpret_cast<float*>(state + region(stride));
    product = decay + strips * part_width;
    across = product + strips * strip_rows * strip_rows;
  }
};

/// What a block does: the keys from `first` on of a chunk, for one query head.
struct KeyPart {
  GlaChunk at;
  std::int64_t first, query_head;
  int keys;   // up to part_width
  bool once;  // the first query head: also what is of the head alone
};

/// Queries and keys at the edges of their strips; a warp has a strip, a lane a channel.
__device__ inline void stage_keys(const GlaBackward& a, const KeyPart& part, const KeyMemory& m) {
  const GlaSizes& s = a.sizes;
  const int strip = static_cast<int>(cuda::warp_index());
  for (int c = static_cast<int>(cuda::lane_index()); c < part_width; c += static_cast<int>(cuda::warp_size)) {
    float q[strip_rows], k[strip_rows], d[strip_rows], until[strip_rows];
    const bool there = c < part.keys;
    const std::int64_t column = part.first + c, of_key = part.at.head * s.key_width + column;
    load_decays(a.log_gate, a.starts, part.at, strip, of_key, there, d);
    load_strip(a.q, part.at, strip, part.query_head * s.key_width + column, there, static_cast<float>(a.scale), q);
    load_strip(a.k, part.at, strip, of_key, there, 1.0f, k);
    m.decay[strip * part_width + c] = decays_in_strip<false>(d, until);
    float since = 1.0f;
    PHASOR_UNROLL
    for (int t = 0; t < strip_rows; ++t) {
      const int to = (strip * strip_rows + t) * part_stride + c;
      since *= d[t];
      m.query[to] = cuda::to_bf16(since * q[t]);
      m.key[to] = cuda::to_bf16(until[t] * k[t]);
    }
  }
}

/// P of a warp's strip: with the strips before it, transposed with those behind it, and within it in f32.
__device__ inline void score_values(const KeyMemory& m, int width, LeftPiece (&scores)[strips]) {
  const int own = static_cast<int>(cuda::warp_index()), size = strip_rows * m.stride;
  PHASOR_UNROLL
  for (int other = 0; other < strips; ++other) {
    const bool later = other > own;
    const Bf16* left = (later ? m.value : m.dout) + own * size;
    const Bf16* right = (later ? m.dout : m.value) + other * size;
    Strip<2> z;
    z.clear();
    z.add<false, true>(left, m.stride, right, m.stride, width);
    scores[other] = z.left(0);
    if (other == own)
      z.each([&](float& x, int i, int j) { m.product[(own * strip_rows + j) * strip_rows + i] = i >= j ? x : 0.0f; });
  }
}

using KeyStrip = Strip<part_width / 8>;

/// z = decay of a strip z + scores operand: one strip further on.
__device__ inline void pass_strip(KeyStrip& z, const float* decay, const LeftPiece& scores, const Bf16* operand) {
  z.each([decay](float& x, int, int c) { x *= decay[c]; });
  z.add<false>(scores, operand, part_stride);
}

__device__ inline void keep_tile(KeyStrip& z, float* tile) {
  float* own = tile + static_cast<int>(cuda::warp_index()) * strip_rows * KeyMemory::tile_stride;
  z.each([own](float& x, int r, int c) { own[r * KeyMemory::tile_stride + c] = x; });
}

/// The tiles. All threads.
__device__ inline void multiply(const GlaBackward& a, const KeyPart& part, const KeyMemory& m) {
  const GlaSizes& s = a.sizes;
  const auto width = static_cast<int>(gla_strips(s.value_width));
  const int own = static_cast<int>(cuda::warp_index());
  const int rows = static_cast<int>(gla_strips(part.keys));
  const auto state_of = [&](const View& states) {
    return half_state(states, s, part.at.state_row, part.at.index) + part.first * width;
  };
  const auto times_state = [&](const Bf16* left, KeyStrip& z) {
    z.clear();
    z.add<false, true>(left + own * strip_rows * m.stride, m.stride, m.state, m.stride, width, rows);
  };
  stage_keys(a, part, m);
  stage_rows(m.dout, m.stride, a.d_o, part.at, part.query_head * s.value_width, width, s.value_width);
  stage_rows(m.value, m.stride, a.v, part.at, part.at.head * s.value_width, width, s.value_width);
  stage_state(m.state, m.stride, state_of(a.kept), width, rows, width);
  __syncthreads();
  LeftPiece scores[strips];
  score_values(m, width, scores);
  KeyStrip z, behind;
  times_state(m.dout, z);
  PHASOR_UNROLL
  for (int other = 0; other < strips - 1; ++other)
    if (other < own)
      pass_strip(z, m.decay + other * part_width, scores[other], m.key + other * strip_rows * part_stride);
  __syncthreads();
  keep_tile(z, m.from_before);
  if (part.once) {
    stage_state(m.state, m.stride, state_of(a.slopes), width, rows, width);
    __syncthreads();
    times_state(m.value, behind);
  } else {
    behind.clear();
  }
  z.clear();
  PHASOR_UNROLL
  for (int other = strips - 1; other > 0; --other)
    if (other > own)
      pass_strip(z, m.decay + other * part_width, scores[other], m.query + other * strip_rows * part_stride);
  __syncthreads();
  keep_tile(z, m.from_later);
  keep_tile(behind, m.from_behind);
}

/// What crosses a whole chunk: rowsum(S (.) D), decayed. A warp takes a key.
__device__ inline void cross_chunk(const GlaBackward& a, const KeyPart& part, const KeyMemory& m) {
  const GlaSizes& s = a.sizes;
  const std::int64_t width = gla_strips(s.value_width), offset = part.first * width;
  const Bf16* before = half_state(a.kept, s, part.at.state_row, part.at.index) + offset;
  const Bf16* behind = half_state(a.slopes, s, part.at.state_row, part.at.index) + offset;
  for (int c = static_cast<int>(cuda::warp_index()); c < part.keys; c += strips) {
    float sum = 0.0f;
    for (std::int64_t v = cuda::lane_index(); part.once && v < width; v += cuda::warp_size)
      sum += cuda::to_float(before[c * width + v]) * cuda::to_float(behind[c * width + v]);
    sum = cuda::warp_sum(sum);
    const float* decay = m.decay + c;
    if (cuda::lane_index() == 0)
      m.across[c] = sum * decay[0] * decay[part_width] * decay[2 * part_width] * decay[3 * part_width];
  }
}

/// dq and dk of one channel of a strip. In place of what they are made of, for every step: in from_before what crosses
/// its gate, but for what comes from other strips and goes to others; in from_later whether the gate lets anything
/// through; and in the first two rows of from_behind what crosses all gates behind the strip, and all gates before it.
__device__ inline void finish_strip(const GlaBackward& a, const KeyPart& part, const KeyMemory& m, int strip, int c) {
  const GlaSizes& s = a.sizes;
  const std::int64_t column = part.first + c, of_key = part.at.head * s.key_width + column;
  const std::int64_t of_query = part.query_head * s.key_width + column;
  float q[strip_rows], k[strip_rows], d[strip_rows], dq[strip_rows] = {};
  load_decays(a.log_gate, a.starts, part.at, strip, of_key, true, d);
  load_strip(a.q, part.at, strip, of_query, true, static_cast<float>(a.scale), q);
  load_strip(a.k, part.at, strip, of_key, true, 1.0f, k);
  const int first = strip * strip_rows, steps = part.at.steps - first;
  float outside = 1.0f;
  for (int other = strip + 1; other < strips; ++other) outside *= m.decay[other * part_width + c];
  float to_later = 0.0f, to_earlier = 0.0f;
  PHASOR_UNROLL
  for (int j = 0; j < strip_rows; ++j) {
    const float* p = m.product + (first + j) * strip_rows;
    const int at = (first + j) * KeyMemory::tile_stride + c;
    float decay = 1.0f, dk = 0.0f;
    PHASOR_UNROLL
    for (int i = j + 1; i < strip_rows; ++i) {
      decay *= d[i];
      const float weight = decay * p[i];
      dq[i] += weight * k[j];
      dk += weight * q[i];
    }
    const float behind = decay * outside * m.from_behind[at];
    m.from_behind[at] = to_later;  // of the strip's own steps before this one
    to_later += k[j] * behind;
    const float later = m.from_later[at];
    m.from_later[at] = k[j] * dk + cuda::to_float(m.key[(first + j) * part_stride + c]) * later;
    dk += p[j] * q[j] + decay * later + behind;
    if (a.dk.data != nullptr && j < steps)
      cuda::put(row<float>(a.dk, part.at.first + first + j)[of_key], dk, a.add_k || !part.once);
  }
  float since = 1.0f;
  PHASOR_UNROLL
  for (int i = 0; i < strip_rows; ++i) {
    const int at = (first + i) * KeyMemory::tile_stride + c;
    since *= d[i];
    const float before = m.from_before[at];
    m.from_before[at] =
        q[i] * dq[i] + cuda::to_float(m.query[(first + i) * part_stride + c]) * before - m.from_later[at];
    dq[i] += m.product[(first + i) * strip_rows + i] * k[i] + since * before;
    if (a.dq.data != nullptr && i < steps)
      cuda::put(row<float>(a.dq, part.at.first + first + i)[of_query], static_cast<float>(a.scale) * dq[i], a.add_q);
  }
  PHASOR_UNROLL
  for (int i = strip_rows - 1; i >= 0; --i) {
    const int at = (first + i) * KeyMemory::tile_stride + c;
    to_earlier += m.from_before[at];
    m.from_before[at] = m.from_behind[at] + to_earlier;
    m.from_later[at] = d[i] == 0.0f ? 0.0f : 1.0f;
  }
  m.from_behind[first * KeyMemory::tile_stride + c] = to_later;
  m.from_behind[(first + 1) * KeyMemory::tile_stride + c] = to_earlier;
}

/// dlog_gate of one channel of a strip, from what finish_strip has left.
__device__ inline void write_gates(const GlaBackward& a, const KeyPart& part, const KeyMemory& m, int strip, int c) {
  const std::int64_t column = part.at.head * a.sizes.key_width + part.first + c;
  float others = m.across[c];
  for (int other = 0; other < strips; ++other)
    if (other != strip)
      others += m.from_behind[(other * strip_rows + (other < strip ? 0 : 1)) * KeyMemory::tile_stride + c];
  for (int t = 0; t < strip_rows; ++t) {
    const int step = strip * strip_rows + t, at = step * KeyMemory::tile_stride + c;
    if (step < part.at.steps)
      cuda::put(row<float>(a.dlog_gate, part.at.first + step)[column],
                m.from_later[at] != 0.0f ? m.from_before[at] + others : 0.0f, a.add_log_gate || !part.once);
  }
}

/// A block makes 64 columns of dq, dk and dlog_gate of a chunk.
__global__ void __launch_bounds__(cuda::chunk_threads, 3) chunk_keys(GlaBackward a, std::int64_t parts) {
  const GlaSizes& s = a.sizes;
  const KeyMemory m(static_cast<int>(gla_strips(s.value_width)));
  const cuda::Place place = cuda::place_of(blockIdx.x, parts), chunk = cuda::place_of(place.row, s.chunks());
  KeyPart part;
  part.at = gla_chunk(s, chunk.row, chunk.column);
  part.first = place.column * part_width;
  part.keys = static_cast<int>(std::min<std::int64_t>(part_width, s.key_width - part.first));
  const int strip = static_cast<int>(cuda::warp_index()), lane = static_cast<int>(cuda::lane_index());
  for (std::int64_t g = 0; g < s.group; ++g) {
    part.query_head = part.at.head * s.group + g;
    part.once = g == 0;
    multiply(a, part, m);
    cross_chunk(a, part, m);
    __syncthreads();
    for (int c = lane; c < part.keys; c += static_cast<int>(cuda::warp_size)) finish_strip(a, part, m, strip, c);
    __syncthreads();
    for (int c = lane; a.dlog_gate.data != nullptr && c < part.keys; c += static_cast<int>(cuda::warp_size))
      write_gates(a, part, m, strip, c);
    __syncthreads();
  }
}

inline void start_keys(const cuda::Queue& queue, const GlaBackward& a) {
  const GlaSizes& s = a.sizes;
  const std::int64_t parts = cuda::divide_up(s.key_width, part_width);
  cuda::start(queue, dim3(static_cast<unsigned>(s.batch * s.heads * s.chunks() * parts)), dim3(cuda::chunk_threads),
              KeyMemory::bytes(static_cast<int>(gla_strips(s.value_width))), chunk_keys, a, parts);
}

}  // namespace phasor::ops
