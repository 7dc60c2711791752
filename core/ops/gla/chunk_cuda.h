#pragma once

#include <algorithm>
#include <cmath>

#include "core/cuda/chunk_tile.h"
#include "core/cuda/reduce.h"
#include "core/cuda/state_tile.h"
#include "core/ops/gla/kernel.h"

// The chunkwise form in bf16 (Yang et al. 2023, section 4; docs/gla.md): the states before all chunks in one pass
// through time, then every chunk on its own. Decays are products of e^g, never quotients: a pair of steps meets at a
// step between them, where the query has decayed from there on and the key up to there, so no operand grows and a decay
// of zero is a zero. They meet at the ends of strips of 16 steps, and within a strip at the middle of ever shorter
// runs. What the gradients need runs backwards in time in the same way, so `back` is a parameter of the kernels.

namespace phasor::ops {

using cuda::Bf16;
using cuda::LeftPiece;
using cuda::Strip;

constexpr int strip_rows = cuda::strip_rows, strips = cuda::chunk_warps;
constexpr int part_width = 64, part_stride = cuda::chunk_stride(part_width);  // columns that are made at once

/// A chunk of a head of keys.
struct GlaChunk {
  std::int64_t batch, head, state_row, index;
  std::int64_t begin, first;  // its first step in the sequence, and among the rows of all
  int steps;
};
__device__ inline GlaChunk gla_chunk(const GlaSizes& s, std::int64_t state_row, std::int64_t index) {
  const auto [batch, head] = cuda::place_of(state_row, s.heads);
  const std::int64_t begin = index * s.chunk;
  return {batch,
          head,
          state_row,
          index,
          begin,
          batch * s.time + begin,
          static_cast<int>(std::min<std::int64_t>(s.chunk, s.time - begin))};
}

/// A column of a strip's steps, for the thread that has it; zeros beyond the sequence and where the column is not
/// there.
__device__ inline void load_strip(const View& from, const GlaChunk& at, int strip, std::int64_t column, bool there,
                                  float factor, float (&x)[strip_rows]) {
  const int left = there && from.data != nullptr ? at.steps - strip * strip_rows : 0;
  PHASOR_UNROLL
  for (int t = 0; t < strip_rows; ++t)
    x[t] = t < left ? factor * row<float>(from, at.first + strip * strip_rows + t)[column] : 0.0f;
}
/// e^g of a channel, zero where a document begins and one beyond the sequence.
__device__ inline void load_decays(const View& log_gate, const View& starts, const GlaChunk& at, int strip,
                                   std::int64_t column, bool there, float (&d)[strip_rows]) {
  load_strip(log_gate, at, strip, column, there, 1.0f, d);
  PHASOR_UNROLL
  for (int t = 0; t < strip_rows; ++t) d[t] = std::exp(d[t]);
  if (starts.data == nullptr) return;
  const std::int64_t begin = at.begin + strip * strip_rows;
  const int left = at.steps - strip * strip_rows;
  PHASOR_UNROLL
  for (int t = 0; t < strip_rows; ++t)
    if (t < left && row<std::int32_t>(starts, at.batch)[begin + t] == begin + t) d[t] = 0.0f;
}

/// States of one head in bf16: of every chunk [padded keys, padded values].
__device__ inline Bf16* half_state(const View& states, const GlaSizes& s, std::int64_t state_row, std::int64_t chunk) {
  const std::int64_t size = gla_strips(s.key_width) * gla_strips(s.value_width);
  return reinterpret_cast<Bf16*>(row<float>(states, state_row)) + chunk * size;
}

/// Rows of a view in bf16: 64 steps of `width` columns from `column` on, zeros from `columns` on. All threads.
__device__ inline void stage_rows(Bf16* to, int stride, const View& from, const GlaChunk& at, std::int64_t column,
                                  int width, std::int64_t columns) {
  const int steps = from.data != nullptr ? at.steps : 0;
  cuda::stage_rounded<cuda::chunk_steps>(to, stride, width, [&](int r, int c) {
    return r < steps && c < columns ? row<float>(from, at.first + r)[column + c] : 0.0f;
  });
}
/// `rows` rows of a state in bf16, of `width` columns, a multiple of 16.
__device__ inline void stage_state(Bf16* to, int stride, const Bf16* from, std::int64_t from_stride, int rows,
                                   int width) {
  struct alignas(16) Eight {
    Bf16 at[8];
  };
  const int packs = width / 8;
  for (int e = static_cast<int>(threadIdx.x); e < rows * packs; e += static_cast<int>(cuda::chunk_threads)) {
    const int r = e / packs, c = 8 * (e % packs);
    *reinterpret_cast<Eight*>(to + r * stride + c) = *reinterpret_cast<const Eight*>(from + r * from_stride + c);
  }
}

/// One pass through time; in brackets what it is backwards.
struct GlaStates {
  View left, right, log_gate, starts;  // k and v (q and d_o)
  View first, last;                    // state_in and state_out (d_state and dstate_in)
  View states;                         // before every chunk (the gradients of those behind every chunk)
  GlaSizes sizes;
  float scale;  // of left
  bool add;     // to last
};

constexpr int state_keys = 32;  // of a block: a lane for each

/// Decay that a step's key has until the end of its strip, or a query from the beginning of it, and that of the strip.
template <bool back>
__device__ float decays_in_strip(const float (&d)[strip_rows], float (&factor)[strip_rows]) {
  float decay = 1.0f;
  PHASOR_UNROLL
  for (int n = 0; n < strip_rows; ++n) {
    const int t = back ? n : strip_rows - 1 - n;
    if (!back) factor[t] = decay;
    decay *= d[t];
    if (back) factor[t] = decay;
  }
  return decay;
}

/// S = diag(decay of the chunk) S + sum of decayed k v^T over its steps. A block has 32 keys and 32 N values of a head,
/// a warp all of those keys and 8 N of the values.
template <bool back, int N>
__global__ void __launch_bounds__(cuda::chunk_threads, N > 2 ? 3 : 2)
    chunk_states(GlaStates a, std::int64_t key_tiles, std::int64_t value_tiles) {
  constexpr int values = 8 * N * strips, left_stride = cuda::chunk_stride(state_keys);
  constexpr int right_stride = cuda::chunk_stride(values);
  const GlaSizes& s = a.sizes;
  auto* left = cuda::shared_memory<Bf16>();
  Bf16* right = left + cuda::chunk_steps * left_stride;
  auto* decay = reinterpret_cast<float*>(right + cuda::chunk_steps * right_stride);  // [strips][keys]
  const cuda::Place tile = cuda::place_of(blockIdx.x, key_tiles), block = cuda::place_of(tile.row, value_tiles);
  const std::int64_t state_row = block.row, first_key = tile.column * state_keys, first_value = block.column * values;
  const int warp = static_cast<int>(cuda::warp_index()), lane = static_cast<int>(cuda::lane_index());
  const std::int64_t key = first_key + lane, own_value = first_value + warp * 8 * N;
  const bool there = key < s.key_width;
  const std::int64_t half_keys = gla_strips(s.key_width), half_values = gla_strips(s.value_width);
  Strip<N> state[2];
  const auto each = [&](auto f) {  // f(element, key, value)
    for (int m = 0; m < 2; ++m)
      state[m].each([&](float& x, int r, int c) { f(x, first_key + strip_rows * m + r, own_value + c); });
  };
  each([&](float& x, std::int64_t k, std::int64_t v) {
    const bool given = a.first.data != nullptr && k < s.key_width && v < s.value_width;
    x = given ? row<float>(a.first, state_row)[k * s.value_width + v] : 0.0f;
  });
  for (std::int64_t n = 0; n < s.chunks(); ++n) {
    const GlaChunk at = gla_chunk(s, state_row, back ? s.chunks() - 1 - n : n);
    Bf16* kept = half_state(a.states, s, state_row, at.index);
    each([&](float& x, std::int64_t k, std::int64_t v) {
      if (k < half_keys && v < half_values) kept[k * half_values + v] = cuda::to_bf16(x);
    });
    float d[strip_rows], factor[strip_rows], x[strip_rows];
    load_decays(a.log_gate, a.starts, at, warp, at.head * s.key_width + key, there, d);
    decay[warp * state_keys + lane] = decays_in_strip<back>(d, factor);
    __syncthreads();
    float outside = a.scale;
    for (int other = back ? 0 : warp + 1; other < (back ? warp : strips); ++other)
      outside *= decay[other * state_keys + lane];
    each([&](float& element, std::int64_t k, std::int64_t) {
      const float* of = decay + (k - first_key);
      element *= of[0] * of[state_keys] * of[2 * state_keys] * of[3 * state_keys];
    });
    const std::int64_t group = back ? s.group : 1;
    for (std::int64_t g = 0; g < group; ++g) {
      const std::int64_t head = at.head * group + g;
      load_strip(a.left, at, warp, head * s.key_width + key, there, outside, x);
      PHASOR_UNROLL
      for (int t = 0; t < strip_rows; ++t)
        left[(warp * strip_rows + t) * left_stride + lane] = cuda::to_bf16(factor[t] * x[t]);
      stage_rows(right, right_stride, a.right, at, head * s.value_width + first_value, values,
                 s.value_width - first_value);
      __syncthreads();
      for (int m = 0; m < 2; ++m)
        state[m].template add<true, false>(left + strip_rows * m, left_stride, right + warp * 8 * N, right_stride,
                                           cuda::chunk_steps);
      __syncthreads();
    }
  }
  if (a.last.data == nullptr) return;
  each([&](float& x, std::int64_t k, std::int64_t v) {
    if (k < s.key_width && v < s.value_width) cuda::put(row<float>(a.last, state_row)[k * s.value_width + v], x, a.add);
  });
}

template <bool back>
void start_states(const cuda::Queue& queue, const GlaStates& a) {
  const GlaSizes& s = a.sizes;
  const auto run = [&](auto strip) {
    constexpr int N = decltype(strip)::value, values = 8 * N * strips;
    const std::int64_t key_tiles = cuda::divide_up(s.key_width, state_keys);
    const std::int64_t value_tiles = cuda::divide_up(s.value_width, values);
    const std::size_t halves = cuda::chunk_steps * (cuda::chunk_stride(state_keys) + cuda::chunk_stride(values));
    cuda::start(queue, dim3(static_cast<unsigned>(s.batch * s.heads * key_tiles * value_tiles)),
                dim3(cuda::chunk_threads), halves * sizeof(Bf16) + strips * state_keys * sizeof(float),
                chunk_states<back, N>, a, key_tiles, value_tiles);
  };
  s.value_width > 64 ? run(std::integral_constant<int, 4>()) : run(std::integral_constant<int, 2>());
}

}  // namespace phasor::ops
