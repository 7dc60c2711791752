#include <algorithm>
#include <string>
#include <type_traits>

#include "core/cuda/kernels.h"
#include "core/cuda/state_tile.h"
#include "core/ops/delta_rule/chunk_backward_cuda.h"
#include "core/ops/delta_rule/chunk_forward_cuda.h"
#include "core/ops/delta_rule/kernel.h"

// In f32 and f64 the recurrence, with tiles of the state in the registers of warps, in three passes. Columns of values have nothing to
// do with each other: forwards in time they give e_t and o_t, backwards y_t = D_t^T k_t. Once e and y are known, with u
// = beta e and d = beta y,
//     S_t = e^{g_t} S_{t-1} + k_t u_t^T,   D_{t-1} = e^{g_t} (D_t - k_t d_t^T) + scale q_{t-1} dO_{t-1}^T
// are plain sums whose columns of keys have nothing to do with each other, and dq, dk and the decays' gradients are
// theirs. No two blocks add to the same place. With products in bf16 chunks on tensor cores: chunk_*_cuda.h.

namespace phasor::ops {

namespace {

using cuda::lane_columns;
using cuda::StateTile;
using cuda::sum_rows;
using cuda::summed_column;
using cuda::tile_columns;
using cuda::writes;

// Blocks of 128 threads that shall fit on a processor of the chip: what their registers leave room for.
template <class T, unsigned R>
constexpr int value_blocks = sizeof(T) > 4 || R > 16 ? 2 : 3;
constexpr int key_blocks = 2;

__device__ int block_columns() { return static_cast<int>(blockDim.x / cuda::warp_size) * tile_columns; }

__device__ bool begins(const View& starts, std::int64_t batch, std::int64_t t) {
  return starts.data != nullptr && row<std::int32_t>(starts, batch)[t] == t;
}

/// A state [key_width, value_width] from key k and value v on; null: zeros.
template <class T>
struct Corner {
  T* data;
  std::int64_t stride, keys, values;  // keys and values that are left
};
template <class T>
__device__ Corner<T> corner(const View& states, std::int64_t row_at, std::int64_t offset, std::int64_t stride,
                            const DeltaRuleSizes& s, std::int64_t k, std::int64_t v) {
  T* data = states.data != nullptr ? row<T>(states, row_at) + offset + k * stride + v : nullptr;
  return {data, stride, s.key_width - k, s.value_width - v};
}
template <bool rows_are_keys, class T, unsigned R>
__device__ void load(StateTile<T, R>& tile, const Corner<T>& from) {
  tile.each([&](T& x, int r, int c) {
    const std::int64_t k = rows_are_keys ? r : c, v = rows_are_keys ? c : r;
    x = from.data != nullptr && k < from.keys && v < from.values ? from.data[k * from.stride + v] : T(0);
  });
}
/// Rows are keys.
template <class T, unsigned R>
__device__ void store(StateTile<T, R>& tile, const Corner<T>& to, bool add) {
  if (to.data == nullptr) return;
  tile.each([&](T& x, int k, int v) {
    if (k < to.keys && v < to.values) cuda::put(to.data[k * to.stride + v], x, add);
  });
}

/// One number per step: e^g and beta; ones where there are none.
template <class T, class Args>
__device__ void stage_factors(const Args& a, std::int64_t first, int count, std::int64_t value_head, T* decay,
                              T* beta) {
  for (int t = static_cast<int>(threadIdx.x); t < count; t += static_cast<int>(blockDim.x)) {
    decay[t] = a.log_decay.data != nullptr ? std::exp(row<T>(a.log_decay, first + t)[value_head]) : T(1);
    beta[t] = a.beta.data != nullptr ? row<T>(a.beta, first + t)[value_head] : T(1);
  }
}

/// Rows of one value head's times.
template <class T>
__device__ View errors_of(const View& errors, std::int64_t state_row, const DeltaRuleSizes& s) {
  return {row<T>(errors, state_row), s.values(1)};
}
template <class T>
__device__ View slopes_of(const View& slopes, std::int64_t state_row, const DeltaRuleSizes& s) {
  return {row<T>(slopes, state_row), s.value_width};
}
/// And, after them, parts of the decays' gradients: [tiles of keys][time].
template <class T>
__device__ T* gates_of(const View& slopes, std::int64_t state_row, const DeltaRuleSizes& s) {
  return row<T>(slopes, state_row) + s.time * s.value_width;
}

struct Place {
  std::int64_t batch, value_head, state_row, first;  // first: column of the block
};
__device__ Place own_place(const DeltaRuleSizes& s, std::int64_t tiles) {
  const auto [state_row, tile] = cuda::place_of(blockIdx.x, tiles);
  return {state_row / s.value_heads(), state_row % s.value_heads(), state_row, tile * block_columns()};
}

/// o, e and the last state: columns of values, rows of keys.
template <class T, unsigned R>
__global__ void __launch_bounds__(128, value_blocks<T, R>)
    forward_values(DeltaRuleForward a, int steps, std::int64_t tiles) {
  using Tile = StateTile<T, R>;
  const DeltaRuleSizes& s = a.sizes;
  const Place at = own_place(s, tiles);
  const int own = static_cast<int>(cuda::warp_index()) * tile_columns, columns = block_columns();
  T* key = cuda::shared_memory<T>();
  T* query = key + steps * Tile::rows;
  T* value = query + steps * Tile::rows;
  T* decay = value + steps * columns;
  T* beta = decay + steps;
  const T scale = static_cast<T>(a.scale);
  const std::int64_t v = at.first + own, head = at.value_head / s.group;
  const bool writer = writes() && v + summed_column() < s.value_width;
  Tile state;
  load<true>(state, corner<T>(a.state_in, at.state_row, 0, s.value_width, s, 0, v));
  std::int64_t chunk = 0, until = 0;
  for (std::int64_t begin = 0; begin < s.time; begin += steps) {
    const int count = static_cast<int>(std::min<std::int64_t>(steps, s.time - begin));
    const std::int64_t first = at.batch * s.time + begin;
    __syncthreads();
    cuda::stage(a.k, first, count, head * s.key_width, s.key_width, Tile::rows, key);
    cuda::stage(a.q, first, count, head * s.key_width, s.key_width, Tile::rows, query,
                [scale](T x) { return scale * x; });
    cuda::stage(a.v, first, count, at.value_head * s.value_width + at.first, s.value_width - at.first, columns, value);
    stage_factors(a, first, count, at.value_head, decay, beta);
    __syncthreads();
    for (int t = 0; t < count; ++t, --until) {
      if (until == 0) {
        store(state, corner<T>(a.kept, at.state_row, chunk++ * s.state(), s.values(1), s, 0, v), false);
        until = s.chunk;
      }
      if (begins(a.starts, at.batch, begin + t)) state.clear();
      T r[R], c[lane_columns], reads[lane_columns];
      Tile::own_rows(key + t * Tile::rows, r);
      state.scale(decay[t]);
      state.read(r, c);
      const T read = sum_rows(c);
      cuda::spread_columns(read, reads);
      Tile::own_columns(value + t * columns + own, c);
      for (int j = 0; j < lane_columns; ++j) c[j] = beta[t] * (c[j] - reads[j]);
      state.add(r, c);
      Tile::own_rows(query + t * Tile::rows, r);
      state.read(r, c);
      const T out = sum_rows(c);
      if (!writer) continue;
      row<T>(a.o, first + t)[at.value_head * s.value_width + v + summed_column()] = out;
      if (a.errors.data != nullptr)
        row<T>(errors_of<T>(a.errors, at.state_row, s), begin + t)[v + summed_column()] =
            value[t * columns + own + summed_column()] - read;
    }
  }
  store(state, corner<T>(a.state_out, at.state_row, 0, s.value_width, s, 0, v), false);
}

/// y and the gradient of the first state: D from the last step to the first; columns of values, rows of keys.
template <class T, unsigned R>
__global__ void __launch_bounds__(128, value_blocks<T, R>)
    backward_values(DeltaRuleBackward a, int steps, std::int64_t tiles) {
  using Tile = StateTile<T, R>;
  const DeltaRuleSizes& s = a.sizes;
  const Place at = own_place(s, tiles);
  const int own = static_cast<int>(cuda::warp_index()) * tile_columns, columns = block_columns();
  T* key = cuda::shared_memory<T>();
  T* query = key + steps * Tile::rows;
  T* dout = query + steps * Tile::rows;
  T* decay = dout + steps * columns;
  T* beta = decay + steps;
  const T scale = static_cast<T>(a.scale);
  const std::int64_t v = at.first + own, head = at.value_head / s.group;
  const View slopes = slopes_of<T>(a.slopes, at.state_row, s);
  Tile slope;
  load<true>(slope, corner<T>(a.d_state, at.state_row, 0, s.value_width, s, 0, v));
  for (std::int64_t end = s.time; end > 0;) {
    const int count = static_cast<int>(std::min<std::int64_t>(steps, end));
    const std::int64_t begin = end - count, first = at.batch * s.time + begin;
    __syncthreads();
    cuda::stage(a.k, first, count, head * s.key_width, s.key_width, Tile::rows, key);
    cuda::stage(a.q, first, count, head * s.key_width, s.key_width, Tile::rows, query,
                [scale](T x) { return scale * x; });
    cuda::stage(a.d_o, first, count, at.value_head * s.value_width + at.first, s.value_width - at.first, columns, dout);
    stage_factors(a, first, count, at.value_head, decay, beta);
    __syncthreads();
    for (int t = count - 1; t >= 0; --t) {
      T r[R], c[lane_columns];
      Tile::own_rows(query + t * Tile::rows, r);
      Tile::own_columns(dout + t * columns + own, c);
      slope.add(r, c);
      Tile::own_rows(key + t * Tile::rows, r);
      slope.read(r, c);
      const T y = sum_rows(c);
      if (writes() && v + summed_column() < s.value_width) row<T>(slopes, begin + t)[v + summed_column()] = y;
      cuda::spread_columns(y, c);
      for (int j = 0; j < lane_columns; ++j) c[j] *= -beta[t];
      slope.add(r, c);
      slope.scale(decay[t]);
      if (begins(a.starts, at.batch, begin + t)) slope.clear();
    }
    end = begin;
  }
  store(slope, corner<T>(a.dstate_in, at.state_row, 0, s.value_width, s, 0, v), a.add_state);
}

/// Shared memory of backward_keys.
template <class T>
struct Staged {
  T *key, *query, *product;  // [steps][columns]
  T *write, *correction;     // [steps][rows]: u and d
  T* dout;                   // [steps][rows]
  T *decay, *beta;           // [steps]
};

/// Where a block of backward_keys works: some columns of the keys of a head, with one of its value heads.
struct KeyPlace {
  std::int64_t batch, head, value_head, state_row, first;
};

/// Operands of steps begin .. begin+count-1; without `all` those that the state takes.
template <class T>
__device__ void stage_steps(const DeltaRuleBackward& a, const KeyPlace& at, const Staged<T>& to, std::int64_t begin,
                            int count, std::int64_t v, int rows, bool all) {
  const DeltaRuleSizes& s = a.sizes;
  const std::int64_t first = at.batch * s.time + begin, column = at.head * s.key_width + at.first;
  const T scale = static_cast<T>(a.scale);
  __syncthreads();
  stage_factors(a, first, count, at.value_head, to.decay, to.beta);
  cuda::stage(a.k, first, count, column, s.key_width - at.first, block_columns(), to.key);
  __syncthreads();
  const auto times_beta = [&](const View& from, T* by_step) {
    const std::int64_t width = s.value_width - v;
    for (int e = static_cast<int>(threadIdx.x); e < count * rows; e += static_cast<int>(blockDim.x))
      by_step[e] = e % rows < width ? to.beta[e / rows] * row<T>(from, begin + e / rows)[v + e % rows] : T(0);
  };
  times_beta(errors_of<T>(a.errors, at.state_row, s), to.write);
  if (all) {
    times_beta(slopes_of<T>(a.slopes, at.state_row, s), to.correction);
    cuda::stage(a.q, first, count, column, s.key_width - at.first, block_columns(), to.query,
                [scale](T x) { return scale * x; });
    cuda::stage(a.d_o, first, count, at.value_head * s.value_width + v, s.value_width - v, rows, to.dout);
  }
  __syncthreads();
}

/// dq, dk and parts of the decays' gradients, for one value head and some values: columns of keys, rows of values. With
/// dk_t = D_t u_t - S'_t d_t, and <S_t, D_t> taken apart in two ways,
///     dg_t = dg_{t+1} + q_t . dq_t - k_t . (D_t u_t + S'_t d_t)
/// from dg behind the steps at hand, which is <S, D> there. Columns add up.
template <class T, unsigned R>
__device__ void pull_keys(const DeltaRuleBackward& a, const KeyPlace& at, const Staged<T>& in, int steps,
                          std::int64_t v, bool more, T* gates) {
  using Tile = StateTile<T, R>;
  const DeltaRuleSizes& s = a.sizes;
  const int own = static_cast<int>(cuda::warp_index()) * tile_columns, columns = block_columns();
  const std::int64_t k = at.first + own;
  const int column = own + summed_column();  // of the block, for what is written
  const std::int64_t key_column = at.head * s.key_width + at.first + column;
  const bool writer = writes() && at.first + column < s.key_width;
  const T scale = static_cast<T>(a.scale);
  Tile state, slope;
  load<false>(slope, corner<T>(a.d_state, at.state_row, 0, s.value_width, s, k, v));
  for (std::int64_t end = s.time; end > 0;) {
    const std::int64_t chunk = (end - 1) / s.chunk, from = chunk * s.chunk;
    const std::int64_t begin = from + (end - 1 - from) / steps * steps, first = at.batch * s.time + begin;
    const int count = static_cast<int>(end - begin);
    T r[R], c[lane_columns];
    const auto forget = [&](std::int64_t t, T decay) {
      if (begins(a.starts, at.batch, t)) state.clear();
      state.scale(decay);
    };
    const auto write = [&](int t) {
      Tile::own_rows(in.write + t * Tile::rows, r);
      Tile::own_columns(in.key + t * columns + own, c);
      state.add(r, c);
    };
    load<false>(state, corner<T>(a.kept, at.state_row, chunk * s.state(), s.values(1), s, k, v));
    for (std::int64_t before = from; before < begin; before += steps) {
      stage_steps(a, at, in, before, steps, v, Tile::rows, false);
      for (int t = 0; t < steps; ++t) {
        forget(before + t, in.decay[t]);
        write(t);
      }
    }
    stage_steps(a, at, in, begin, count, v, Tile::rows, true);
    for (int t = 0; t < count; ++t) {
      forget(begin + t, in.decay[t]);
      Tile::own_rows(in.correction + t * Tile::rows, r);
      state.read(r, c);
      const T corrected = sum_rows(c);  // S' d
      write(t);
      Tile::own_rows(in.dout + t * Tile::rows, r);
      state.read(r, c);
      const T dq = sum_rows(c);
      const int e = t * columns + column;
      if (!writer) continue;
      in.product[e] = in.query[e] * dq - in.key[e] * corrected;
      if (a.dq.data != nullptr) cuda::put(row<T>(a.dq, first + t)[key_column], scale * dq, a.add_q || more);
      if (a.dk.data != nullptr) cuda::put(row<T>(a.dk, first + t)[key_column], -corrected, a.add_k || more);
    }
    slope.read(state, c);
    T behind = sum_rows(c);  // dg of the step behind
    for (int t = count - 1; t >= 0; --t) {
      Tile::own_rows(in.dout + t * Tile::rows, r);
      Tile::own_columns(in.query + t * columns + own, c);
      slope.add(r, c);
      Tile::own_rows(in.write + t * Tile::rows, r);
      slope.read(r, c);
      const T dk = sum_rows(c);
      const bool fresh = begins(a.starts, at.batch, begin + t);
      if (writer) {
        const int e = t * columns + column;
        // Nothing comes through a decay of zero, and not even a rounding error shall.
        behind = fresh || in.decay[t] == T(0) ? T(0) : behind + in.product[e] - in.key[e] * dk;
        if (a.dk.data != nullptr) row<T>(a.dk, first + t)[key_column] += dk;
        in.product[e] = behind;
      }
      Tile::own_rows(in.correction + t * Tile::rows, r);
      Tile::own_columns(in.key + t * columns + own, c);
      for (int j = 0; j < lane_columns; ++j) c[j] = -c[j];
      slope.add(r, c);
      slope.scale(in.decay[t]);
      if (fresh) slope.clear();
    }
    __syncthreads();
    const std::int64_t left = s.key_width - at.first;
    for (int t = static_cast<int>(threadIdx.x); t < count; t += static_cast<int>(blockDim.x)) {
      T sum(0);
      for (int i = 0; i < columns && i < left; ++i) sum += in.product[t * columns + i];
      cuda::put(gates[begin + t], sum, v > 0);
    }
    end = begin;
  }
}

template <class T, unsigned R>
__global__ void __launch_bounds__(128, key_blocks) backward_keys(DeltaRuleBackward a, int steps, std::int64_t tiles) {
  const DeltaRuleSizes& s = a.sizes;
  const int columns = block_columns(), rows = StateTile<T, R>::rows;
  Staged<T> in;
  in.key = cuda::shared_memory<T>();
  in.query = in.key + steps * columns;
  in.product = in.query + steps * columns;
  in.write = in.product + steps * columns;
  in.correction = in.write + steps * rows;
  in.dout = in.correction + steps * rows;
  in.decay = in.dout + steps * rows;
  in.beta = in.decay + steps;
  const auto [head_row, tile] = cuda::place_of(blockIdx.x, tiles);
  const std::int64_t batch = head_row / s.heads, head = head_row % s.heads;
  for (std::int64_t g = 0; g < s.group; ++g) {
    const std::int64_t value_head = head * s.group + g, state_row = batch * s.value_heads() + value_head;
    const KeyPlace at{batch, head, value_head, state_row, tile * columns};
    T* gates = gates_of<T>(a.slopes, state_row, s) + tile * s.time;
    for (std::int64_t v = 0; v < s.value_width; v += rows) pull_keys<T, R>(a, at, in, steps, v, g > 0 || v > 0, gates);
  }
}

// A warp takes one step of one value head.
constexpr unsigned finish_warps = 4;

/// dv, dbeta and dlog_decay.
template <class T>
__global__ void finish_step(DeltaRuleBackward a, std::int64_t tiles) {
  const DeltaRuleSizes& s = a.sizes;
  const auto [r, h] =
      cuda::place_of(static_cast<std::int64_t>(blockIdx.x) * finish_warps + cuda::warp_index(), s.value_heads());
  if (r >= s.batch * s.time) return;
  const std::int64_t batch = r / s.time, t = r % s.time, state_row = batch * s.value_heads() + h;
  const T* error = row<T>(errors_of<T>(a.errors, state_row, s), t);
  const T* slope = row<T>(slopes_of<T>(a.slopes, state_row, s), t);
  const T beta = a.beta.data != nullptr ? row<T>(a.beta, r)[h] : T(1);
  T dot(0);
  for (std::int64_t i = cuda::lane_index(); i < s.value_width; i += cuda::warp_size) {
    dot += error[i] * slope[i];
    if (a.dv.data != nullptr) cuda::put(row<T>(a.dv, r)[h * s.value_width + i], beta * slope[i], a.add_v);
  }
  dot = cuda::warp_sum(dot);
  if (cuda::lane_index() != 0) return;
  if (a.dbeta.data != nullptr) cuda::put(row<T>(a.dbeta, r)[h], dot, a.add_beta);
  if (a.dlog_decay.data == nullptr) return;
  const T* gates = gates_of<T>(a.slopes, state_row, s);
  T sum(0);
  for (std::int64_t tile = 0; tile < tiles; ++tile) sum += gates[tile * s.time + t];
  cuda::put(row<T>(a.dlog_decay, r)[h], sum, a.add_log_decay);
}

constexpr int most_warps = 4, most_steps = 32;
constexpr std::size_t processor_shared = 216 << 10;  // of a processor's, for as many blocks as registers allow

/// Calls f(constant R): tiles of 8 R rows, the smallest that hold the width, or the largest, `most`.
template <unsigned most, unsigned R = 2, class F>
void with_rows(std::int64_t width, F f) {
  if constexpr (R < most)
    if (width > 8 * R) return with_rows<most, 2 * R>(width, f);
  f(std::integral_constant<unsigned, R>());
}
// A state of all keys stands in registers; there are 255.
template <class T>
constexpr unsigned most_key_rows = sizeof(T) > 4 ? 16 : 32;
template <class T>
constexpr unsigned most_value_rows = sizeof(T) > 4 ? 8 : 16;

std::int64_t warps_of(std::int64_t columns) {
  return std::min<std::int64_t>(most_warps, cuda::divide_up(columns, tile_columns));
}
std::int64_t tiles_of(std::int64_t columns) { return cuda::divide_up(columns, warps_of(columns) * tile_columns); }

/// Starts blocks of `columns` for every one of `heads`. A step takes per_row * rows + per_column * columns + 2 elements
/// of shared memory.
template <class T, class Args>
void start_tiles(const cuda::Queue& queue, const Args& a, std::int64_t heads, std::int64_t columns, std::int64_t rows,
                 std::int64_t per_row, std::int64_t per_column, int blocks, void (*kernel)(Args, int, std::int64_t)) {
  const std::int64_t warps = warps_of(columns), tiles = tiles_of(columns);
  const auto step = static_cast<std::size_t>(per_row * rows + per_column * warps * tile_columns + 2) * sizeof(T);
  const std::int64_t room = static_cast<std::int64_t>(processor_shared / step) / blocks;
  const auto steps = static_cast<std::size_t>(
      std::clamp<std::int64_t>(room, 1, std::clamp<std::int64_t>(a.sizes.time, 1, most_steps)));
  cuda::start(queue, dim3(static_cast<unsigned>(a.sizes.batch * heads * tiles)),
              dim3(static_cast<unsigned>(warps) * cuda::warp_size), steps * step, kernel, a, static_cast<int>(steps),
              tiles);
}

template <class T>
void check_width(const DeltaRuleSizes& s) {
  constexpr std::int64_t most = 8 * most_key_rows<T>;
  if (s.key_width > most)
    throw UserError("delta_rule on a CUDA device: keys of " + std::to_string(s.key_width) + " channels, at most " +
                    std::to_string(most) + "; use more heads, or --device cpu");
}

template <class T>
void forward(const cuda::Queue& queue, const DeltaRuleForward& a) {
  const DeltaRuleSizes& s = a.sizes;
  check_width<T>(s);
  with_rows<most_key_rows<T>>(s.key_width, [&](auto rows) {
    constexpr unsigned R = decltype(rows)::value;
    start_tiles<T>(queue, a, s.value_heads(), s.value_width, 8 * R, 2, 1, value_blocks<T, R>, forward_values<T, R>);
  });
}

template <class T>
void backward(const cuda::Queue& queue, const DeltaRuleBackward& a) {
  const DeltaRuleSizes& s = a.sizes;
  with_rows<most_key_rows<T>>(s.key_width, [&](auto rows) {
    constexpr unsigned R = decltype(rows)::value;
    start_tiles<T>(queue, a, s.value_heads(), s.value_width, 8 * R, 2, 1, value_blocks<T, R>, backward_values<T, R>);
  });
  if (a.dq.data != nullptr || a.dk.data != nullptr || a.dlog_decay.data != nullptr)
    with_rows<most_value_rows<T>>(s.value_width, [&](auto rows) {
      constexpr unsigned R = decltype(rows)::value;
      start_tiles<T>(queue, a, s.heads, s.key_width, 8 * R, 3, 3, key_blocks, backward_keys<T, R>);
    });
  if (a.dv.data == nullptr && a.dbeta.data == nullptr && a.dlog_decay.data == nullptr) return;
  const std::int64_t warps = s.batch * s.time * s.value_heads();
  cuda::start(queue, dim3(static_cast<unsigned>(cuda::divide_up(warps, finish_warps))),
              dim3(finish_warps * cuda::warp_size), 0, finish_step<T>, a, tiles_of(s.key_width));
}

/// Calls f(constant): tiles of 64 keys.
template <class F>
void with_tiles(const DeltaRuleSizes& s, F f) {
  check_width<float>(s);
  if (s.key_width <= 64) return f(std::integral_constant<int, 1>());
  if (s.key_width <= 128) return f(std::integral_constant<int, 2>());
  f(std::integral_constant<int, 4>());
}

void forward_in_f32(const cuda::Queue& queue, const DeltaRuleForward& a) {
  if (a.precision != ProductPrecision::bf16) return forward<float>(queue, a);
  with_tiles(a.sizes, [&](auto tiles) { delta_chunks::start_forward<decltype(tiles)::value>(queue, a); });
}
void backward_in_f32(const cuda::Queue& queue, const DeltaRuleBackward& a) {
  if (a.precision != ProductPrecision::bf16) return backward<float>(queue, a);
  with_tiles(a.sizes, [&](auto tiles) { delta_chunks::start_backward<decltype(tiles)::value>(queue, a); });
}

}  // namespace

void delta_rule_cuda(cuda::Kernels& kernels) {
  kernels.add(delta_rule_forward, forward_in_f32, forward<double>);
  kernels.add(delta_rule_backward, backward_in_f32, backward<double>);
}

}  // namespace phasor::ops
