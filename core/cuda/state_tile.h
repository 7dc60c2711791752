#pragma once

#include "core/cuda/launch.h"
#include "core/cuda/reduce.h"
#include "core/tensor/view.h"

// A matrix that runs through time in the registers of warps, for recurrences x_t = decay x_{t-1} + r_t c_t^T (gla,
// delta_rule). Of the two widths of a state one is summed over when the state is read (rows), the other is not
// (columns), so blocks of columns have nothing to do with each other. What a step needs stands in shared memory, put
// there for some steps at a time.

namespace phasor::cuda {

/// Neighbours that one load brings.
template <class T, unsigned count>
struct alignas(count * sizeof(T) < 16 ? count * sizeof(T) : 16) Pack {
  T at[count];
};

constexpr int row_lanes = 8, lane_columns = 4;
constexpr int tile_columns = lane_columns * static_cast<int>(warp_size) / row_lanes;  // of a warp

/// 8 * R rows times 16 columns of a warp. Lane l holds R rows of columns 4 (l / 8) .. + 3; rows come in runs of four
/// (two), lane after lane, so that eight lanes read what lies side by side.
template <class T, unsigned R>
struct StateTile {
  static constexpr int own = static_cast<int>(R), rows = row_lanes * own, run = own < 4 ? own : 4;
  T x[R][lane_columns];

  __device__ static int lane_row() { return static_cast<int>(lane_index()) % row_lanes; }
  __device__ static int row_at(int i) { return (i / run * row_lanes + lane_row()) * run + i % run; }
  __device__ static int first_column() { return static_cast<int>(lane_index()) / row_lanes * lane_columns; }

  /// Of a vector of all rows: those of this lane.
  __device__ static void own_rows(const T* vector, T (&to)[R]) {
    PHASOR_UNROLL
    for (int i = 0; i < own; i += run) {
      const auto pack = *reinterpret_cast<const Pack<T, static_cast<unsigned>(run)>*>(vector + row_at(i));
      for (int j = 0; j < run; ++j) to[i + j] = pack.at[j];
    }
  }
  /// Of a vector of the warp's columns.
  __device__ static void own_columns(const T* vector, T (&to)[lane_columns]) {
    const auto pack = *reinterpret_cast<const Pack<T, lane_columns>*>(vector + first_column());
    for (int j = 0; j < lane_columns; ++j) to[j] = pack.at[j];
  }

  /// f(x, row, column of the warp) for every element.
  template <class F>
  __device__ void each(F f) {
    PHASOR_UNROLL
    for (int i = 0; i < own; ++i)
      for (int j = 0; j < lane_columns; ++j) f(x[i][j], row_at(i), first_column() + j);
  }
  __device__ void clear() {
    each([](T& value, int, int) { value = T(0); });
  }

  /// x = decay x + r c^T, the decay one of a row, of a column, or 1.
  __device__ void step_rows(const T (&decay)[R], const T (&r)[R], const T (&c)[lane_columns]) {
    PHASOR_UNROLL
    for (int i = 0; i < own; ++i)
      for (int j = 0; j < lane_columns; ++j) x[i][j] = decay[i] * x[i][j] + r[i] * c[j];
  }
  __device__ void step_columns(const T (&decay)[lane_columns], const T (&r)[R], const T (&c)[lane_columns]) {
    PHASOR_UNROLL
    for (int i = 0; i < own; ++i)
      for (int j = 0; j < lane_columns; ++j) x[i][j] = decay[j] * x[i][j] + r[i] * c[j];
  }
  __device__ void add(const T (&r)[R], const T (&c)[lane_columns]) {
    PHASOR_UNROLL
    for (int i = 0; i < own; ++i)
      for (int j = 0; j < lane_columns; ++j) x[i][j] += r[i] * c[j];
  }
  __device__ void scale(T factor) {
    each([factor](T& value, int, int) { value *= factor; });
  }
  __device__ void scale_rows(const T (&decay)[R]) {
    PHASOR_UNROLL
    for (int i = 0; i < own; ++i)
      for (int j = 0; j < lane_columns; ++j) x[i][j] *= decay[i];
  }
  __device__ void scale_columns(const T (&decay)[lane_columns]) {
    PHASOR_UNROLL
    for (int i = 0; i < own; ++i)
      for (int j = 0; j < lane_columns; ++j) x[i][j] *= decay[j];
  }

  /// This lane's part of x^T r.
  __device__ void read(const T (&r)[R], T (&sums)[lane_columns]) const {
    for (int j = 0; j < lane_columns; ++j) sums[j] = x[0][j] * r[0];
    PHASOR_UNROLL
    for (int i = 1; i < own; ++i)
      for (int j = 0; j < lane_columns; ++j) sums[j] += x[i][j] * r[i];
  }
  /// This lane's part of the sums of x (.) other over the rows.
  __device__ void read(const StateTile& other, T (&sums)[lane_columns]) const {
    for (int j = 0; j < lane_columns; ++j) sums[j] = T(0);
    PHASOR_UNROLL
    for (int i = 0; i < own; ++i)
      for (int j = 0; j < lane_columns; ++j) sums[j] += x[i][j] * other.x[i][j];
  }
};

/// Which column of the warp a lane has after sum_rows; two lanes have the same, and the one that `writes` writes it.
__device__ inline int summed_column() {
  const unsigned lane = lane_index();
  return static_cast<int>(lane / row_lanes * lane_columns + (lane >> 2 & 1) * 2 + (lane >> 1 & 1));
}
__device__ inline bool writes() { return (lane_index() & 1) == 0; }

/// Sums over the lanes that share columns. Every exchange gives away half of the columns that are left.
template <class T>
__device__ T sum_rows(const T (&sums)[lane_columns]) {
  const bool upper = (lane_index() & 4) != 0, odd = (lane_index() & 2) != 0;
  const T first = (upper ? sums[2] : sums[0]) + __shfl_xor_sync(whole_warp, upper ? sums[0] : sums[2], 4);
  const T second = (upper ? sums[3] : sums[1]) + __shfl_xor_sync(whole_warp, upper ? sums[1] : sums[3], 4);
  const T one = (odd ? second : first) + __shfl_xor_sync(whole_warp, odd ? first : second, 2);
  return one + __shfl_xor_sync(whole_warp, one, 1);
}
/// The sums of all four columns of a lane, from what sum_rows gave.
template <class T>
__device__ void spread_columns(T sum, T (&to)[lane_columns]) {
  const int group = static_cast<int>(lane_index()) / row_lanes * row_lanes;
  for (int j = 0; j < lane_columns; ++j) to[j] = __shfl_sync(whole_warp, sum, group + 2 * j);
}

/// to[step][i] = f(element (first + step, column + i)) for i < width, and zeros up to `padded`. All threads of the
/// block.
template <class T, class F>
__device__ void stage(const View& from, std::int64_t first, int steps, std::int64_t column, std::int64_t width,
                      int padded, T* to, F f) {
  for (int e = static_cast<int>(threadIdx.x); e < steps * padded; e += static_cast<int>(blockDim.x)) {
    const int step = e / padded, i = e % padded;
    to[e] = i < width && from.data != nullptr ? f(row<T>(from, first + step)[column + i]) : T(0);
  }
}
template <class T>
__device__ void stage(const View& from, std::int64_t first, int steps, std::int64_t column, std::int64_t width,
                      int padded, T* to) {
  stage(from, first, steps, column, width, padded, to, [](T x) { return x; });
}

/// Writes or adds.
template <class T>
__device__ void put(T& to, T value, bool add) {
  to = add ? to + value : value;
}

}  // namespace phasor::cuda
