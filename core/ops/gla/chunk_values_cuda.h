#pragma once

#include "core/ops/gla/chunk_cuda.h"

// o and dv in the chunkwise form: scores of the steps of a chunk times v, and queries times the state before it; for dv
// the same backwards, with keys for queries, d_o for v and D, the gradient of the state behind the chunk, for the
// state.

namespace phasor::ops {

/// In brackets what it is backwards.
struct GlaValues {
  View q, k, log_gate, starts, states;
  View right;  // v (d_o)
  View out;    // o (dv)
  GlaSizes sizes;
  float scale;  // of q
  bool add;     // to out
};

/// Shared memory of a block. Of a row of a strip and those of another strip `near` is the side that has decayed since
/// the end (until the beginning) of it.
struct ScoreMemory {
  int width, stride;    // keys, padded
  Bf16 *near, *far;     // [64][stride]: queries and keys (keys and queries) as at the edge of their strip
  Bf16* level;          // [4][16][stride]: of one strip
  Bf16* diagonal;       // [64][diagonal_stride]: the scores within strips
  float *decay, *dots;  // [strips][width] of strips; [width / 32][16] shares of q_i . k_i
  Bf16 *state, *right;  // later, in place of far and level: [width][part_stride], [64][part_stride]
  static constexpr int diagonal_stride = strip_rows + 8;

  static constexpr int far_size(int width) {
    return std::max(cuda::chunk_steps * cuda::chunk_stride(width), width * part_stride);
  }
  static constexpr int level_size(int width) {
    return std::max(cuda::chunk_steps * cuda::chunk_stride(width), cuda::chunk_steps * part_stride);
  }
  static constexpr std::size_t bytes(int width) {
    const int near_size = cuda::chunk_steps * cuda::chunk_stride(width);
    const int halves = near_size + far_size(width) + level_size(width) + cuda::chunk_steps * diagonal_stride;
    const int floats = strips * width + (width + 31) / 32 * strip_rows;
    return static_cast<std::size_t>(halves) * sizeof(Bf16) + static_cast<std::size_t>(floats) * sizeof(float);
  }
  __device__ explicit ScoreMemory(int padded) : width(padded), stride(cuda::chunk_stride(padded)) {
    near = cuda::shared_memory<Bf16>();
    state = far = near + cuda::chunk_steps * stride;
    right = level = far + far_size(width);
    diagonal = level + level_size(width);
    decay = reinterpret_cast<float*>(diagonal + cuda::chunk_steps * diagonal_stride);
    dots = decay + strips * width;
  }
};

/// Of every run of 2 h steps the queries behind its middle as they have decayed since, and the keys before it as they
/// will have: a row is one or the other.
template <int h>
__device__ void stage_level(const float (&q)[strip_rows], const float (&k)[strip_rows], const float (&d)[strip_rows],
                            Bf16* to, int stride) {
  PHASOR_UNROLL
  for (int middle = h; middle < strip_rows; middle += 2 * h) {
    float since = 1.0f, until = 1.0f;
    PHASOR_UNROLL
    for (int n = 0; n < h; ++n) {
      since *= d[middle + n];
      to[(middle + n) * stride] = cuda::to_bf16(since * q[middle + n]);
      to[(middle - 1 - n) * stride] = cuda::to_bf16(until * k[middle - 1 - n]);
      until *= d[middle - 1 - n];
    }
  }
}

/// Operands of one strip; a lane has a channel.
template <bool back>
__device__ void stage_operands(const GlaValues& a, const GlaChunk& at, std::int64_t query_head, int strip,
                               const ScoreMemory& m) {
  const GlaSizes& s = a.sizes;
  const int lane = static_cast<int>(cuda::lane_index());
  for (int c = static_cast<int>(threadIdx.x); c - lane < m.width; c += static_cast<int>(cuda::chunk_threads)) {
    const bool there = c < s.key_width;
    float q[strip_rows], k[strip_rows], d[strip_rows], until[strip_rows];
    load_decays(a.log_gate, a.starts, at, strip, at.head * s.key_width + c, there, d);
    load_strip(a.q, at, strip, query_head * s.key_width + c, there, a.scale, q);
    load_strip(a.k, at, strip, at.head * s.key_width + c, there, 1.0f, k);
    float own = 0.0f;
    PHASOR_UNROLL
    for (int t = 0; t < strip_rows; ++t) {
      const float dot = cuda::warp_sum(q[t] * k[t]);
      if (lane == t) own = dot;
    }
    if (lane < strip_rows) m.dots[c / 32 * strip_rows + lane] = own;
    if (c >= m.width) continue;
    m.decay[strip * m.width + c] = decays_in_strip<false>(d, until);
    Bf16* query = (back ? m.far : m.near) + strip * strip_rows * m.stride + c;
    Bf16* key = (back ? m.near : m.far) + strip * strip_rows * m.stride + c;
    float since = 1.0f;
    PHASOR_UNROLL
    for (int t = 0; t < strip_rows; ++t) {
      since *= d[t];
      query[t * m.stride] = cuda::to_bf16(since * q[t]);
      key[t * m.stride] = cuda::to_bf16(until[t] * k[t]);
    }
    stage_level<8>(q, k, d, m.level + c, m.stride);
    stage_level<4>(q, k, d, m.level + strip_rows * m.stride + c, m.stride);
    stage_level<2>(q, k, d, m.level + 2 * strip_rows * m.stride + c, m.stride);
    stage_level<1>(q, k, d, m.level + 3 * strip_rows * m.stride + c, m.stride);
  }
}

/// Scores of the pairs of a strip: warp w has those that meet in the middle of runs of 16 >> w steps.
__device__ inline void score_strip(int strip, const ScoreMemory& m) {
  const int warp = static_cast<int>(cuda::warp_index()), lane = static_cast<int>(cuda::lane_index());
  const Bf16* x = m.level + warp * strip_rows * m.stride;
  Bf16* to = m.diagonal + strip * strip_rows * m.diagonal_stride;
  Strip<2> z;
  z.clear();
  z.add<false, true>(x, m.stride, x, m.stride, m.width);
  z.each([&](float& score, int i, int j) {
    const int shift = 3 - warp, half_i = i >> shift, half_j = j >> shift;
    if (half_i == half_j || half_i / 2 != half_j / 2) return;  // they meet elsewhere
    to[i * m.diagonal_stride + j] = i > j ? cuda::to_bf16(score) : Bf16(0);
  });
  if (warp > 0 || lane >= strip_rows) return;
  float dot = 0.0f;
  for (int n = 0; 32 * n < m.width; ++n) dot += m.dots[n * strip_rows + lane];
  to[lane * (m.diagonal_stride + 1)] = cuda::to_bf16(dot);
}

/// Two neighbours in k, decayed.
__device__ inline std::uint32_t decayed(std::uint32_t pair, const float* decay) {
  return cuda::bf16_pair(cuda::to_float(static_cast<Bf16>(pair & 0xffff)) * decay[0],
                         cuda::to_float(static_cast<Bf16>(pair >> 16)) * decay[1]);
}

/// Scores of a warp's rows with the strips of the past (of the future), nearest first and its own before them. The rows
/// decay on their way, and are left as they are at the beginning (end) of the chunk.
template <bool back>
__device__ void score_strips(const ScoreMemory& m, LeftPiece (&scores)[strips]) {
  const int own = static_cast<int>(cuda::warp_index()), t = static_cast<int>(cuda::lane_index()) % 4;
  Bf16* rows = m.near + own * strip_rows * m.stride;
  Strip<2> z[strips - 1];
  for (auto& each : z) each.clear();
  for (int k = 0; k < m.width; k += 16) {
    LeftPiece x = cuda::left_piece<false>(rows + k, m.stride);
    PHASOR_UNROLL
    for (int n = 0; n < strips; ++n) {
      const int other = back ? own + n : own - n;  // 0: its own, which only decays what comes from beyond
      if (other < 0 || other >= strips) break;
      if (n > 0) {
        z[n - 1].add<true>(x, m.far + other * strip_rows * m.stride + k, m.stride);
        const float* decay = m.decay + other * m.width + k + 2 * t;
        for (int i = 0; i < 4; ++i) x.word[i] = decayed(x.word[i], decay + i / 2 * 8);
      }
    }
    for (int i = 0; i < 4; ++i) {
      const int r = Strip<2>::row(i % 2 * 2), c = k + 2 * t + i / 2 * 8;
      *reinterpret_cast<std::uint32_t*>(rows + r * m.stride + c) = x.word[i];
    }
  }
  scores[0] = cuda::left_piece<back>(m.diagonal + own * strip_rows * m.diagonal_stride, m.diagonal_stride);
  PHASOR_UNROLL
  for (int n = 1; n < strips; ++n) scores[n] = z[n - 1].left(0);
}

/// o of a chunk of a query head (dv of a chunk of a head, over the query heads that share it). A warp has a strip.
template <bool back>
__global__ void __launch_bounds__(cuda::chunk_threads, 3) chunk_values(GlaValues a) {
  const GlaSizes& s = a.sizes;
  const ScoreMemory m(static_cast<int>(gla_strips(s.key_width)));
  const std::int64_t group = back ? 1 : s.group;
  const cuda::Place place = cuda::place_of(blockIdx.x, s.chunks());  // of a head, or query head, of the batch
  const GlaChunk at = gla_chunk(s, place.row / group, place.column);
  const int warp = static_cast<int>(cuda::warp_index());
  const std::int64_t half_values = gla_strips(s.value_width);
  const Bf16* states = half_state(a.states, s, at.state_row, at.index);
  for (std::int64_t g = 0; g < (back ? s.group : 1); ++g) {
    const std::int64_t query_head = at.head * s.group + (back ? g : place.row % group);
    for (int strip = 0; strip < strips; ++strip) {
      stage_operands<back>(a, at, query_head, strip, m);
      __syncthreads();
      score_strip(strip, m);
      __syncthreads();
    }
    LeftPiece scores[strips];
    score_strips<back>(m, scores);
    for (std::int64_t part = 0; part < half_values; part += part_width) {
      const int columns = static_cast<int>(std::min<std::int64_t>(part_width, half_values - part));
      const std::int64_t right_head = back ? query_head : at.head, out_head = back ? at.head : query_head;
      __syncthreads();
      stage_rows(m.right, part_stride, a.right, at, right_head * s.value_width + part, columns, s.value_width - part);
      stage_state(m.state, part_stride, states + part, half_values, m.width, columns);
      __syncthreads();
      Strip<part_width / 8> out;
      out.clear();
      if (g == 0)
        out.template add<false, false>(m.near + warp * strip_rows * m.stride, m.stride, m.state, part_stride, m.width,
                                       columns);
      PHASOR_UNROLL
      for (int n = 0; n < strips; ++n) {
        const int other = back ? warp + n : warp - n;
        if (other < 0 || other >= strips) break;
        out.template add<false>(scores[n], m.right + other * strip_rows * part_stride, part_stride, columns);
      }
      out.each([&](float& x, int r, int c) {
        const int step = warp * strip_rows + r;
        if (step < at.steps && part + c < s.value_width)
          cuda::put(row<float>(a.out, at.first + step)[out_head * s.value_width + part + c], x, a.add || g > 0);
      });
    }
    __syncthreads();
  }
}

template <bool back>
void start_values(const cuda::Queue& queue, const GlaValues& a) {
  const GlaSizes& s = a.sizes;
  const std::int64_t heads = s.batch * s.heads * (back ? 1 : s.group);
  cuda::start(queue, dim3(static_cast<unsigned>(heads * s.chunks())), dim3(cuda::chunk_threads),
              ScoreMemory::bytes(static_cast<int>(gla_strips(s.key_width))), chunk_values<back>, a);
}

}  // namespace phasor::ops
