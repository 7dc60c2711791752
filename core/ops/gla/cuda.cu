#include <algorithm>
#include <type_traits>

#include "core/cuda/kernels.h"
#include "core/cuda/state_tile.h"
#include "core/ops/gla/chunk_keys_cuda.h"
#include "core/ops/gla/chunk_values_cuda.h"
#include "core/ops/gla/kernel.h"

// The recurrence itself, as on the processor (docs/gla.md), with tiles of the state in the registers of warps. Columns
// of values have nothing to do with each other in o and dv, nor columns of keys in dq, dk and dlog_gate, so a block
// takes some columns of one head through all of time and no two blocks add to the same place. A kernel that needs the
// state from both sides of time starts from the kept state of every chunk.

namespace phasor::ops {

namespace {

using cuda::lane_columns;
using cuda::StateTile;
using cuda::sum_rows;
using cuda::summed_column;
using cuda::tile_columns;
using cuda::writes;

// Blocks of 128 threads that shall fit on a processor of the chip: what their registers leave room for.
template <class T>
constexpr int value_blocks = sizeof(T) > 4 ? 2 : 4;
constexpr int key_blocks = 2;

struct Place {
  std::int64_t batch, head, state_row, first;  // first: column of the block
};
__device__ Place own_place(const GlaSizes& s, std::int64_t tiles) {
  const auto [state_row, tile] = cuda::place_of(blockIdx.x, tiles);
  const std::int64_t columns = blockDim.x / cuda::warp_size * tile_columns;
  return {state_row / s.heads, state_row % s.heads, state_row, tile * columns};
}

__device__ bool begins(const View& starts, std::int64_t batch, std::int64_t t) {
  return starts.data != nullptr && row<std::int32_t>(starts, batch)[t] == t;
}

/// A state [key_width, value_width] in memory, from key k and value v on; null: zeros.
template <class T>
struct Corner {
  T* data;
  std::int64_t stride, keys, values;  // keys and values that are left
};
template <class T>
__device__ Corner<T> corner(const View& states, std::int64_t row_at, std::int64_t offset, std::int64_t stride,
                            const GlaSizes& s, std::int64_t k, std::int64_t v) {
  T* data = states.data != nullptr ? row<T>(states, row_at) + offset + k * stride + v : nullptr;
  return {data, stride, s.key_width - k, s.value_width - v};
}

/// Rows of the tile are keys (or values), its columns values (or keys).
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

/// Decays as the forward pass has left them: rows of one head's times.
template <class T>
__device__ View kept_decays(const View& decays, std::int64_t state_row, const GlaSizes& s) {
  return {row<T>(decays, state_row), s.keys()};
}

/// o, the last state, and what the backward pass wants: columns of values, rows of keys.
template <class T, unsigned R>
__global__ void __launch_bounds__(128, value_blocks<T>) forward_values(GlaForward a, int steps, std::int64_t tiles) {
  using Tile = StateTile<T, R>;
  const GlaSizes& s = a.sizes;
  const Place at = own_place(s, tiles);
  const int group = static_cast<int>(s.group), own = static_cast<int>(cuda::warp_index()) * tile_columns;
  const int columns = static_cast<int>(blockDim.x / cuda::warp_size) * tile_columns;
  T* decay = cuda::shared_memory<T>();
  T* key = decay + steps * Tile::rows;
  T* query = key + steps * Tile::rows;
  T* value = query + group * steps * Tile::rows;
  const T scale = static_cast<T>(a.scale);
  const std::int64_t v = at.first + own;
  Tile state;
  for (std::int64_t k = 0; k < s.key_width; k += Tile::rows) {
    load<true>(state, corner<T>(a.state_in, at.state_row, 0, s.value_width, s, k, v));
    std::int64_t chunk = 0, until = 0;
    for (std::int64_t begin = 0; begin < s.time; begin += steps) {
      const int count = static_cast<int>(std::min<std::int64_t>(steps, s.time - begin));
      const std::int64_t first = at.batch * s.time + begin;
      const auto stage_keys = [&](const View& from, std::int64_t head, T* to, auto f) {
        cuda::stage(from, first, count, head * s.key_width + k, s.key_width - k, Tile::rows, to, f);
      };
      __syncthreads();
      stage_keys(a.log_gate, at.head, decay, [](T g) { return std::exp(g); });
      stage_keys(a.k, at.head, key, [](T x) { return x; });
      for (int g = 0; g < group; ++g)
        stage_keys(a.q, at.head * group + g, query + g * steps * Tile::rows, [scale](T x) { return scale * x; });
      cuda::stage(a.v, first, count, at.head * s.value_width + at.first, s.value_width - at.first, columns, value);
      __syncthreads();
      if (a.decays.data != nullptr && at.first == 0) {
        const View decays = kept_decays<T>(a.decays, at.state_row, s);
        for (int e = static_cast<int>(threadIdx.x); e < count * Tile::rows; e += static_cast<int>(blockDim.x))
          if (k + e % Tile::rows < s.key_width) row<T>(decays, begin + e / Tile::rows)[k + e % Tile::rows] = decay[e];
      }
      for (int t = 0; t < count; ++t, --until) {
        if (until == 0) {
          store(state, corner<T>(a.kept, at.state_row, chunk++ * s.state(), s.values(), s, k, v), false);
          until = s.chunk;
        }
        if (begins(a.starts, at.batch, begin + t)) state.clear();
        T d[R], r[R], c[lane_columns];
        Tile::own_rows(decay + t * Tile::rows, d);
        Tile::own_rows(key + t * Tile::rows, r);
        Tile::own_columns(value + t * columns + own, c);
        state.step_rows(d, r, c);
        for (int g = 0; g < group; ++g) {
          Tile::own_rows(query + (g * steps + t) * Tile::rows, r);
          state.read(r, c);
          const T sum = sum_rows(c);
          if (writes() && v + summed_column() < s.value_width)
            cuda::put(row<T>(a.o, first + t)[(at.head * group + g) * s.value_width + v + summed_column()], sum, k > 0);
        }
      }
    }
    store(state, corner<T>(a.state_out, at.state_row, 0, s.value_width, s, k, v), false);
  }
}

/// dv and the gradient of the first state: D from the last step to the first; columns of values, rows of keys.
template <class T, unsigned R>
__global__ void __launch_bounds__(128, value_blocks<T>) backward_values(GlaBackward a, int steps, std::int64_t tiles) {
  using Tile = StateTile<T, R>;
  const GlaSizes& s = a.sizes;
  const Place at = own_place(s, tiles);
  const int group = static_cast<int>(s.group), own = static_cast<int>(cuda::warp_index()) * tile_columns;
  const int columns = static_cast<int>(blockDim.x / cuda::warp_size) * tile_columns;
  T* decay = cuda::shared_memory<T>();
  T* key = decay + steps * Tile::rows;
  T* query = key + steps * Tile::rows;
  T* dout = query + group * steps * Tile::rows;
  const T scale = static_cast<T>(a.scale);
  const std::int64_t v = at.first + own;
  Tile slope;
  for (std::int64_t k = 0; k < s.key_width; k += Tile::rows) {
    load<true>(slope, corner<T>(a.d_state, at.state_row, 0, s.value_width, s, k, v));
    for (std::int64_t end = s.time; end > 0;) {
      const int count = static_cast<int>(std::min<std::int64_t>(steps, end));
      const std::int64_t begin = end - count, first = at.batch * s.time + begin;
      __syncthreads();
      cuda::stage(kept_decays<T>(a.decays, at.state_row, s), begin, count, k, s.key_width - k, Tile::rows, decay);
      cuda::stage(a.k, first, count, at.head * s.key_width + k, s.key_width - k, Tile::rows, key);
      for (int g = 0; g < group; ++g) {
        const std::int64_t head = at.head * group + g;
        cuda::stage(a.q, first, count, head * s.key_width + k, s.key_width - k, Tile::rows,
                    query + g * steps * Tile::rows, [scale](T x) { return scale * x; });
        cuda::stage(a.d_o, first, count, head * s.value_width + at.first, s.value_width - at.first, columns,
                    dout + g * steps * columns);
      }
      __syncthreads();
      for (int t = count - 1; t >= 0; --t) {
        T r[R], c[lane_columns];
        for (int g = 0; g < group; ++g) {
          Tile::own_rows(query + (g * steps + t) * Tile::rows, r);
          Tile::own_columns(dout + (g * steps + t) * columns + own, c);
          slope.add(r, c);
        }
        Tile::own_rows(key + t * Tile::rows, r);
        slope.read(r, c);
        const T sum = sum_rows(c);
        if (a.dv.data != nullptr && writes() && v + summed_column() < s.value_width)
          cuda::put(row<T>(a.dv, first + t)[at.head * s.value_width + v + summed_column()], sum, a.add_v || k > 0);
        Tile::own_rows(decay + t * Tile::rows, r);
        slope.scale_rows(r);
        if (begins(a.starts, at.batch, begin + t)) slope.clear();
      }
      end = begin;
    }
    store(slope, corner<T>(a.dstate_in, at.state_row, 0, s.value_width, s, k, v), a.add_state);
  }
}

/// Shared memory of backward_keys.
template <class T>
struct Staged {
  T *decay, *key, *product;  // [steps][columns]
  T* query;                  // [group][steps][columns]
  T* value;                  // [steps][rows]
  T* dout;                   // [group][steps][rows]
};

/// Operands of steps begin .. begin+count-1 of one head; without `all` those that the state takes.
template <class T>
__device__ void stage_steps(const GlaBackward& a, const Place& at, const Staged<T>& to, std::int64_t begin, int count,
                            int steps, std::int64_t v, int rows, bool all) {
  const GlaSizes& s = a.sizes;
  const std::int64_t first = at.batch * s.time + begin, keys = s.key_width - at.first;
  const int columns = static_cast<int>(blockDim.x / cuda::warp_size) * tile_columns;
  const T scale = static_cast<T>(a.scale);
  __syncthreads();
  cuda::stage(kept_decays<T>(a.decays, at.state_row, s), begin, count, at.first, keys, columns, to.decay);
  cuda::stage(a.k, first, count, at.head * s.key_width + at.first, keys, columns, to.key);
  cuda::stage(a.v, first, count, at.head * s.value_width + v, s.value_width - v, rows, to.value);
  for (int g = 0; all && g < s.group; ++g) {
    const std::int64_t head = at.head * s.group + g;
    cuda::stage(a.q, first, count, head * s.key_width + at.first, keys, columns, to.query + g * steps * columns,
                [scale](T x) { return scale * x; });
    cuda::stage(a.d_o, first, count, head * s.value_width + v, s.value_width - v, rows, to.dout + g * steps * rows);
  }
  __syncthreads();
}

/// dq, dk and dlog_gate: columns of keys, rows of values. With x_t = rowsum(S_t (.) D_t) the gradients of the gates are
///     x_t = q_t (.) dq_t + dg_{t+1},   dg_t = x_t - k_t (.) dk_t
/// from dg behind the steps at hand, which is rowsum(S (.) D) there: a sum over a few steps, whose error is that of
/// q (.) dq.
template <class T, unsigned R>
__global__ void __launch_bounds__(128, key_blocks) backward_keys(GlaBackward a, int steps, std::int64_t tiles) {
  using Tile = StateTile<T, R>;
  const GlaSizes& s = a.sizes;
  const Place at = own_place(s, tiles);
  const int group = static_cast<int>(s.group), own = static_cast<int>(cuda::warp_index()) * tile_columns;
  const int columns = static_cast<int>(blockDim.x / cuda::warp_size) * tile_columns;
  Staged<T> in;
  in.decay = cuda::shared_memory<T>();
  in.key = in.decay + steps * columns;
  in.product = in.key + steps * columns;
  in.query = in.product + steps * columns;
  in.value = in.query + group * steps * columns;
  in.dout = in.value + steps * Tile::rows;
  const T scale = static_cast<T>(a.scale);
  const std::int64_t k = at.first + own;
  const int column = own + summed_column();  // of the block, for what is written
  const std::int64_t key_column = at.first + column;
  const bool writer = writes() && key_column < s.key_width;
  Tile state, slope;
  for (std::int64_t v = 0; v < s.value_width; v += Tile::rows) {
    const bool more = v > 0;
    const auto step_state = [&](std::int64_t begin, int t) {
      if (begins(a.starts, at.batch, begin + t)) state.clear();
      T d[lane_columns], c[lane_columns], r[R];
      Tile::own_columns(in.decay + t * columns + own, d);
      Tile::own_columns(in.key + t * columns + own, c);
      Tile::own_rows(in.value + t * Tile::rows, r);
      state.step_columns(d, r, c);
    };
    load<false>(slope, corner<T>(a.d_state, at.state_row, 0, s.value_width, s, k, v));
    for (std::int64_t end = s.time; end > 0;) {
      const std::int64_t chunk = (end - 1) / s.chunk, from = chunk * s.chunk;
      const std::int64_t begin = from + (end - 1 - from) / steps * steps, first = at.batch * s.time + begin;
      const int count = static_cast<int>(end - begin);
      load<false>(state, corner<T>(a.kept, at.state_row, chunk * s.state(), s.values(), s, k, v));
      for (std::int64_t before = from; before < begin; before += steps) {
        stage_steps(a, at, in, before, steps, steps, v, Tile::rows, false);
        for (int t = 0; t < steps; ++t) step_state(before, t);
      }
      stage_steps(a, at, in, begin, count, steps, v, Tile::rows, true);
      T r[R], c[lane_columns];
      for (int t = 0; t < count; ++t) {
        step_state(begin, t);
        T product(0);
        for (int g = 0; g < group; ++g) {
          Tile::own_rows(in.dout + (g * steps + t) * Tile::rows, r);
          state.read(r, c);
          const T sum = sum_rows(c);
          if (!writer) continue;
          product += in.query[(g * steps + t) * columns + column] * sum;
          if (a.dq.data != nullptr)
            cuda::put(row<T>(a.dq, first + t)[(at.head * group + g) * s.key_width + key_column], scale * sum,
                      a.add_q || more);
        }
        if (writer) in.product[t * columns + column] = product;
      }
      slope.read(state, c);
      T behind = sum_rows(c);  // dg of the step behind
      for (int t = count - 1; t >= 0; --t) {
        for (int g = 0; g < group; ++g) {
          Tile::own_rows(in.dout + (g * steps + t) * Tile::rows, r);
          Tile::own_columns(in.query + (g * steps + t) * columns + own, c);
          slope.add(r, c);
        }
        Tile::own_rows(in.value + t * Tile::rows, r);
        slope.read(r, c);
        const T sum = sum_rows(c);
        const bool fresh = begins(a.starts, at.batch, begin + t);
        if (writer) {
          const int e = t * columns + column;
          // Nothing comes through a decay of zero, and not even a rounding error shall.
          behind = fresh || in.decay[e] == T(0) ? T(0) : behind + in.product[e] - in.key[e] * sum;
          const std::int64_t place = at.head * s.key_width + key_column;
          if (a.dk.data != nullptr) cuda::put(row<T>(a.dk, first + t)[place], sum, a.add_k || more);
          if (a.dlog_gate.data != nullptr)
            cuda::put(row<T>(a.dlog_gate, first + t)[place], behind, a.add_log_gate || more);
        }
        Tile::own_columns(in.decay + t * columns + own, c);
        slope.scale_columns(c);
        if (fresh) slope.clear();
      }
      end = begin;
    }
  }
}

constexpr int most_warps = 4, most_steps = 32;
constexpr std::size_t processor_shared = 216 << 10;  // of a processor's, for as many blocks as registers allow

/// Calls f(constant R): tiles of 8 R rows, the smallest that hold the width, or the largest of the precision.
template <class T, unsigned R = 2, class F>
void with_rows(std::int64_t width, F f) {
  constexpr unsigned most = sizeof(T) > 4 ? 8 : 16;
  if constexpr (R < most)
    if (width > 8 * R) return with_rows<T, 2 * R>(width, f);
  f(std::integral_constant<unsigned, R>());
}

/// Starts blocks of `columns` for every head. A step takes per_row * rows + per_column * columns elements of shared
/// memory.
template <class T, class Args>
void start_tiles(const cuda::Queue& queue, const Args& a, std::int64_t columns, std::int64_t rows, std::int64_t per_row,
                 std::int64_t per_column, int blocks, void (*kernel)(Args, int, std::int64_t)) {
  const GlaSizes& s = a.sizes;
  const std::int64_t warps = std::min<std::int64_t>(most_warps, cuda::divide_up(columns, tile_columns));
  const std::int64_t tiles = cuda::divide_up(columns, warps * tile_columns);
  const auto step = static_cast<std::size_t>(per_row * rows + per_column * warps * tile_columns) * sizeof(T);
  const std::int64_t room = static_cast<std::int64_t>(processor_shared / step) / blocks;
  const auto steps =
      static_cast<std::size_t>(std::clamp<std::int64_t>(room, 1, std::clamp<std::int64_t>(s.time, 1, most_steps)));
  cuda::start(queue, dim3(static_cast<unsigned>(s.batch * s.heads * tiles)),
              dim3(static_cast<unsigned>(warps) * cuda::warp_size), steps * step, kernel, a, static_cast<int>(steps),
              tiles);
}

template <class T>
void forward(const cuda::Queue& queue, const GlaForward& a) {
  const GlaSizes& s = a.sizes;
  with_rows<T>(s.key_width, [&](auto rows) {
    constexpr unsigned R = decltype(rows)::value;
    start_tiles<T>(queue, a, s.value_width, 8 * R, 2 + s.group, 1, value_blocks<T>, forward_values<T, R>);
  });
}

template <class T>
void backward(const cuda::Queue& queue, const GlaBackward& a) {
  const GlaSizes& s = a.sizes;
  if (a.dv.data != nullptr || a.dstate_in.data != nullptr)
    with_rows<T>(s.key_width, [&](auto rows) {
      constexpr unsigned R = decltype(rows)::value;
      start_tiles<T>(queue, a, s.value_width, 8 * R, 2 + s.group, s.group, value_blocks<T>, backward_values<T, R>);
    });
  if (a.dq.data == nullptr && a.dk.data == nullptr && a.dlog_gate.data == nullptr) return;
  with_rows<T>(s.value_width, [&](auto rows) {
    constexpr unsigned R = decltype(rows)::value;
    start_tiles<T>(queue, a, s.key_width, 8 * R, 1 + s.group, 3 + s.group, key_blocks, backward_keys<T, R>);
  });
}

void forward_in_f32(const cuda::Queue& queue, const GlaForward& a) {
  if (!gla_in_chunks(a.precision, a.sizes)) return forward<float>(queue, a);
  start_states<false>(queue, {a.k, a.v, a.log_gate, a.starts, a.state_in, a.state_out, a.kept, a.sizes, 1.0f, false});
  start_values<false>(queue,
                      {a.q, a.k, a.log_gate, a.starts, a.kept, a.v, a.o, a.sizes, static_cast<float>(a.scale), false});
}

void backward_in_f32(const cuda::Queue& queue, const GlaBackward& a) {
  if (!gla_in_chunks(a.precision, a.sizes)) return backward<float>(queue, a);
  const auto scale = static_cast<float>(a.scale);
  start_states<true>(queue,
                     {a.q, a.d_o, a.log_gate, a.starts, a.d_state, a.dstate_in, a.slopes, a.sizes, scale, a.add_state});
  if (a.dv.data != nullptr)
    start_values<true>(queue, {a.q, a.k, a.log_gate, a.starts, a.slopes, a.d_o, a.dv, a.sizes, scale, a.add_v});
  if (a.dq.data != nullptr || a.dk.data != nullptr || a.dlog_gate.data != nullptr) start_keys(queue, a);
}

}  // namespace

void gla_cuda(cuda::Kernels& kernels) {
  kernels.add(gla_forward, forward_in_f32, forward<double>);
  kernels.add(gla_backward, backward_in_f32, backward<double>);
}

}  // namespace phasor::ops
