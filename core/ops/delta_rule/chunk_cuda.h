#pragma once

#include <cmath>
#include <cstdint>

#include "core/cuda/chunk_tile.h"
#include "core/cuda/launch.h"
#include "core/cuda/reduce.h"
#include "core/ops/delta_rule/kernel.h"

// The delta rule in chunks of 64 steps on tensor cores (docs/delta.md): what the kernels of both passes share. Operands
// of products are rounded to bf16; sums, decays, the triangular system and the states that run through time are f32.

/// Before a loop whose turns shall not overlap: more loads in flight would cost registers.
#ifdef __CUDACC__
#define PHASOR_ONE_BY_ONE _Pragma("unroll 1")
#else
#define PHASOR_ONE_BY_ONE
#endif

namespace phasor::ops::delta_chunks {

using cuda::Bf16;
using cuda::LeftPiece;
using cuda::Strip;

constexpr int steps = static_cast<int>(DeltaRuleChunks::steps), edge = 64;  // of a chunk; of a square in shared memory
constexpr int square_stride = cuda::chunk_stride(edge), square = edge * square_stride;
static_assert(steps == cuda::chunk_steps);

/// A chunk of one value head.
struct Place {
  std::int64_t first;                                    // row of its first step among [batch * time]
  int batch, value_head, head, state_row, chunk, count;  // count: of its steps
};
__device__ inline Place place_at(const DeltaRuleSizes& s, std::int64_t state_row, std::int64_t chunk) {
  const auto [batch, value_head] = cuda::place_of(state_row, s.value_heads());
  const std::int64_t left = s.time - chunk * steps;
  return {batch * s.time + chunk * steps,
          static_cast<int>(batch),
          static_cast<int>(value_head),
          static_cast<int>(cuda::place_of(value_head, s.group).row),
          static_cast<int>(state_row),
          static_cast<int>(chunk),
          left < steps ? static_cast<int>(left) : steps};
}

/// The log decay of a step; `cut`: nothing comes through it, since it is minus infinity or a document begins.
struct Decay {
  float log;
  bool cut;
};
template <class Args>
__device__ Decay decay_at(const Args& a, const Place& at, int step) {
  const std::int64_t t = std::int64_t{at.chunk} * steps + step;
  const bool begins = a.starts.data != nullptr && row<std::int32_t>(a.starts, at.batch)[t] == t;
  const float log = a.log_decay.data != nullptr ? row<float>(a.log_decay, at.first + step)[at.value_head] : 0.0f;
  return begins || std::exp(log) == 0.0f ? Decay{0.0f, true} : Decay{log, false};
}

/// Decays within a chunk, and beta. Steps behind the end of the sequence have beta 0 and no decay.
struct Gates {
  float sum[steps];                  // of the log decays of steps 0 .. i, cuts left out
  int cuts[steps];                   // among them
  float since[steps], until[steps];  // from before the chunk to step i, from step i to the last one
  float beta[steps];

  /// From step j to step i >= j. Sums fall, so that no exponential overflows.
  __device__ float between(int i, int j) const { return cuts[i] == cuts[j] ? std::exp(sum[i] - sum[j]) : 0.0f; }
  __device__ float through() const { return since[steps - 1]; }

  /// By the lanes of one warp.
  template <class Args>
  __device__ void read(const Args& a, const Place& at) {
    constexpr int warp = static_cast<int>(cuda::warp_size);
    const int lane = static_cast<int>(cuda::lane_index());
    float own[steps / warp], total = 0.0f;
    int marks[steps / warp], all = 0;
    PHASOR_UNROLL
    for (int half = 0; half < steps / warp; ++half) {
      const int i = half * warp + lane;
      const Decay decay = i < at.count ? decay_at(a, at, i) : Decay{0.0f, false};
      own[half] = decay.log, marks[half] = decay.cut ? 1 : 0;
      PHASOR_UNROLL
      for (int apart = 1; apart < warp; apart *= 2) {
        const float other = __shfl_up_sync(cuda::whole_warp, own[half], static_cast<unsigned>(apart));
        const int more = __shfl_up_sync(cuda::whole_warp, marks[half], static_cast<unsigned>(apart));
        if (lane >= apart) own[half] += other, marks[half] += more;
      }
      own[half] += total, marks[half] += all;
      total = __shfl_sync(cuda::whole_warp, own[half], warp - 1);
      all = __shfl_sync(cuda::whole_warp, marks[half], warp - 1);
    }
    PHASOR_UNROLL
    for (int half = 0; half < steps / warp; ++half) {
      const int i = half * warp + lane;
      sum[i] = own[half], cuts[i] = marks[half];
      since[i] = marks[half] == 0 ? std::exp(own[half]) : 0.0f;
      until[i] = marks[half] == all ? std::exp(total - own[half]) : 0.0f;
      const bool given = i < at.count && a.beta.data != nullptr;
      beta[i] = given ? row<float>(a.beta, at.first + i)[at.value_head] : (i < at.count ? 1.0f : 0.0f);
    }
  }
};

/// `width` columns of 64 rows into shared memory, times a factor and rounded; zeros beyond `rows` and `columns`. By all
/// threads of a block; so are the functions below. No barrier. A thread has two columns of every `apart`-th row, so
/// that what it adds to its address is the same for all threads.
template <int width, unsigned threads>
__device__ void stage(Bf16* to, const float* from, std::int64_t stride, int rows, std::int64_t columns, float factor) {
  constexpr int pairs = width / 2, apart = static_cast<int>(threads) / pairs, in_flight = 8;
  static_assert(apart * pairs == static_cast<int>(threads) && edge % (apart * in_flight) == 0);
  const int r = static_cast<int>(threadIdx.x) / pairs, c = 2 * (static_cast<int>(threadIdx.x) % pairs);
  const float* at = from + r * stride + c;
  const std::int64_t further = apart * stride;
  Bf16* own_to = to + r * cuda::chunk_stride(width) + c;
  const bool first = c < columns, second = c + 1 < columns;
  PHASOR_ONE_BY_ONE
  for (int n = 0; n < edge / apart; n += in_flight) {
    float x[in_flight], y[in_flight];
    PHASOR_UNROLL
    for (int i = 0; i < in_flight; ++i, at += further) {
      const bool there = r + (n + i) * apart < rows;
      x[i] = there && first ? at[0] : 0.0f;
      y[i] = there && second ? at[1] : 0.0f;
    }
    PHASOR_UNROLL
    for (int i = 0; i < in_flight; ++i)
      *reinterpret_cast<std::uint32_t*>(own_to + (n + i) * apart * cuda::chunk_stride(width)) =
          cuda::bf16_pair(factor * x[i], factor * y[i]);
  }
}

/// 64 rows of 64 that are bf16 already; `columns`: a multiple of 8.
template <unsigned threads>
__device__ void copy_square(Bf16* to, const Bf16* from, std::int64_t stride, std::int64_t rows, std::int64_t columns) {
  struct alignas(16) Run {
    std::uint32_t words[4];
  };
  constexpr int runs = edge / 8, apart = static_cast<int>(threads) / runs, each = edge / apart;
  const int r = static_cast<int>(threadIdx.x) / runs, c = 8 * (static_cast<int>(threadIdx.x) % runs);
  const Bf16* at = from + r * stride + c;
  Run run[std::size_t{each}];
  PHASOR_UNROLL
  for (int i = 0; i < each; ++i, at += apart * stride)
    run[i] = r + i * apart < rows && c < columns ? *reinterpret_cast<const Run*>(at) : Run{};
  PHASOR_UNROLL
  for (int i = 0; i < each; ++i) *reinterpret_cast<Run*>(to + (r + i * apart) * square_stride + c) = run[i];
}

/// P and X of a chunk, one after the other, rows of 64.
__device__ inline Bf16* scores_of(const View& scores, const Place& at) {
  return reinterpret_cast<Bf16*>(row<float>(scores, at.state_row)) + std::int64_t{at.chunk} * (2 * steps * steps);
}
/// Rows of DeltaRuleChunks::values of bf16, from the first step of the chunk on.
__device__ inline Bf16* vectors_of(const View& vectors, const DeltaRuleChunks& c, const Place& at) {
  return reinterpret_cast<Bf16*>(row<float>(vectors, at.state_row)) + std::int64_t{at.chunk} * steps * c.values;
}
/// A state of its chunk, transposed: rows of `keys` of bf16, one for each value.
__device__ inline Bf16* state_of(float* states, const DeltaRuleChunks& c, const Place& at) {
  return reinterpret_cast<Bf16*>(states) + at.chunk * c.values * c.keys;
}
__device__ inline float* slope_states(const View& slopes, const DeltaRuleChunks& c, const Place& at) {
  return row<float>(slopes, at.state_row) + c.vectors();
}
/// [tiles][time] and, behind them, [tiles][chunks].
__device__ inline float* slope_parts(const View& slopes, const DeltaRuleChunks& c, std::int64_t state_row) {
  return row<float>(slopes, state_row) + c.vectors() + c.states();
}

/// Columns 16 c .. 16 c + 15 of a strip, times factor(column) and rounded, as a left operand.
template <int N, class F>
__device__ LeftPiece scaled_left(const Strip<N>& x, int c, F factor) {
  const int at = Strip<N>::column(2 * c, 0);
  const float near[2] = {factor(at), factor(at + 1)}, far[2] = {factor(at + 8), factor(at + 9)};
  const float(&y)[4] = x.at[2 * c], (&z)[4] = x.at[2 * c + 1];
  return {{cuda::bf16_pair(near[0] * y[0], near[1] * y[1]), cuda::bf16_pair(near[0] * y[2], near[1] * y[3]),
           cuda::bf16_pair(far[0] * z[0], far[1] * z[1]), cuda::bf16_pair(far[0] * z[2], far[1] * z[3])}};
}

/// The same for an operand that is one already.
__device__ inline LeftPiece scaled_again(const LeftPiece& x, int c, const float (&factor)[steps]) {
  const int at = Strip<2>::column(2 * c, 0);
  const auto times = [](std::uint32_t pair, float first, float second) {
    return cuda::bf16_pair(first * cuda::to_float(static_cast<Bf16>(pair & 0xffffu)),
                           second * cuda::to_float(static_cast<Bf16>(pair >> 16)));
  };
  return {{times(x.word[0], factor[at], factor[at + 1]), times(x.word[1], factor[at], factor[at + 1]),
           times(x.word[2], factor[at + 8], factor[at + 9]), times(x.word[3], factor[at + 8], factor[at + 9])}};
}

// What runs through time is made by a warp for 16 columns of values, transposed: rows are values. Then what a product
// makes is the left operand of the next one as it stands in registers, and warps wait for each other only where a chunk
// is brought to shared memory.

/// Shared memory of a chunk: [steps][keys] twice, then P and X.
template <int tiles>
struct Operands {
  static constexpr int keys = edge * tiles, stride = cuda::chunk_stride(keys);
  static constexpr std::size_t bytes = std::size_t{2 * steps * stride + 2 * square} * sizeof(Bf16);
  Bf16 *query, *key, *seen, *solved;

  __device__ Operands() : query(cuda::shared_memory<Bf16>()) {
    key = query + steps * stride;
    seen = key + steps * stride;
    solved = seen + square;
  }
  template <class Args>
  __device__ void stage_chunk(const Args& a, const Place& at, Gates& gates) const {
    const std::int64_t width = a.sizes.key_width, column = at.head * width;
    __syncthreads();
    if (cuda::warp_index() == 0) gates.read(a, at);
    stage<keys, cuda::chunk_threads>(query, row<float>(a.q, at.first) + column, a.q.stride, at.count, width,
                                     static_cast<float>(a.scale));
    stage<keys, cuda::chunk_threads>(key, row<float>(a.k, at.first) + column, a.k.stride, at.count, width, 1.0f);
    const Bf16* scores = scores_of(a.scores, at);
    copy_square<cuda::chunk_threads>(seen, scores, steps, steps, steps);
    copy_square<cuda::chunk_threads>(solved, scores + steps * steps, steps, steps, steps);
    __syncthreads();
  }
};

/// A state from value v on: rows are values. `from` [key_width, value_width]; null: zeros.
template <int N>
__device__ void load_state(Strip<N>& state, const float* from, const DeltaRuleSizes& s, std::int64_t v) {
  state.each([&](float& x, int r, int k) {
    x = from != nullptr && k < s.key_width && v + r < s.value_width ? from[k * s.value_width + v + r] : 0.0f;
  });
}
template <int N>
__device__ void store_state(Strip<N>& state, const View& to, std::int64_t state_row, const DeltaRuleSizes& s,
                            std::int64_t v, bool add) {
  if (to.data == nullptr) return;
  state.each([&](float x, int r, int k) {
    if (k >= s.key_width || v + r >= s.value_width) return;
    float& y = row<float>(to, state_row)[k * s.value_width + v + r];
    y = add ? y + x : x;
  });
}
/// In bf16, rows of `keys` as in state_of.
template <int N>
__device__ void keep_state(const Strip<N>& state, Bf16* to, const DeltaRuleChunks& c, std::int64_t v) {
  PHASOR_UNROLL
  for (int i = 0; i < 4; i += 2) {
    const std::int64_t value = v + Strip<N>::row(i), k = Strip<N>::column(0, i);
    if (value >= c.values) return;
    Bf16* own = to + value * c.keys + k;
    PHASOR_UNROLL
    for (int n = 0; n < N; ++n)
      if (k + 8 * n < c.keys)
        *reinterpret_cast<std::uint32_t*>(own + 8 * n) = cuda::bf16_pair(state.at[n][i], state.at[n][i + 1]);
  }
}

/// A strip of a vector for each step, rows are values, and rows of memory, one for each step: f(element of the strip,
/// element of memory, step) for `values` of them from value v on. `data`: of the first step and value v.
template <class T, class F>
__device__ void each_value(Strip<8>& x, T* data, std::int64_t stride, int count, std::int64_t values, F f) {
  const int r = Strip<8>::row(0), i = Strip<8>::column(0, 0);
  const bool first = r < values, second = r + 8 < values;
  T* own = data + i * stride + r;
  PHASOR_UNROLL
  for (int n = 0; n < 8; ++n, own += 8 * stride) {  // the next address from the last, so that few are kept
    PHASOR_UNROLL
    for (int e = 0; e < 2; ++e) {
      const int step = i + 8 * n + e;
      T* at = own + e * stride;
      if (step < count && first) f(x.at[n][e], at[0], step);
      if (step < count && second) f(x.at[n][2 + e], at[8], step);
    }
  }
}
/// Of rows [batch * time] of [value_heads, value_width].
template <class F>
__device__ void each_value(Strip<8>& x, const View& view, const DeltaRuleSizes& s, const Place& at, std::int64_t v,
                           F f) {
  each_value(x, row<float>(view, at.first) + at.value_head * s.value_width + v, view.stride, at.count,
             s.value_width - v, f);
}
/// Into rows of `values` of bf16 as in vectors_of.
__device__ inline void keep_vectors(Strip<8>& x, Bf16* to, const DeltaRuleChunks& c, std::int64_t v, int count) {
  each_value(x, to + v, c.values, count, c.values - v,
             [](float value, Bf16& kept, int) { kept = cuda::to_bf16(value); });
}

}  // namespace phasor::ops::delta_chunks
