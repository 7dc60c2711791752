#pragma once

#include <cmath>
#include <cstddef>

#include "core/cuda/launch.h"

// Matrix products of small square tiles, for kernels that do more with a tile than a library would. A block of 128
// threads, 16 x 8, holds a tile in registers: thread (i, j) has rows i, i + 16, .., and of every row as many columns.
// The operands go through shared memory and are read from it 16 bytes at a time, 3 reads for 32 multiply-adds in f32.

namespace phasor::cuda {

constexpr unsigned tile_threads = 128;

template <class T>
struct Tile {
  static constexpr int edge = sizeof(T) == 4 ? 64 : 32;
  static constexpr int pack = 16 / sizeof(T);                 // elements of one read
  static constexpr int rows = edge / 16, columns = edge / 8;  // of a thread
  static constexpr int depth = 32;                            // of a product, that is in shared memory at once
  // Of rows in shared memory: neighbours begin four banks apart, so eight reads of 16 bytes go to all of them.
  static constexpr int depth_stride = depth + pack, stride = edge + pack;
  /// Elements of shared memory: for operands on their way, and for a tile that is itself an operand.
  static constexpr int stage = 2 * edge * depth_stride, size = edge * stride;
  static_assert(stage >= size);

  T at[std::size_t{rows}][std::size_t{columns}];

  __device__ void clear() {
    for (auto& row : at)
      for (T& value : row) value = T(0);
  }
  /// Rows of the tile that the calling thread has; columns when the tile is made by `inner`, and by `outer`.
  __device__ static int row(int a) { return static_cast<int>(threadIdx.x) / 8 + 16 * a; }
  __device__ static int inner_column(int b) { return static_cast<int>(threadIdx.x) % 8 + 8 * b; }
  __device__ static int outer_column(int b) {
    return (static_cast<int>(threadIdx.x) % 8 + 8 * (b / pack)) * pack + b % pack;
  }
};

/// Up to `edge` rows of device memory; the rows that are not there are zeros.
template <class T>
struct TileRows {
  const T* data;
  std::int64_t stride;
  int rows;
};

template <class T>
struct alignas(16) Pack {
  T at[16 / sizeof(T)];
};
template <class T>
__device__ Pack<T> read_pack(const T* from) {
  return *reinterpret_cast<const Pack<T>*>(from);
}

/// `width` columns of a tile of rows from `column` on, times a factor, into shared memory; zeros from column `columns`
/// on.
template <class T, int width, int stride>
__device__ void stage_rows(T* to, const TileRows<T>& from, std::int64_t column, std::int64_t columns, T factor) {
  const int left = columns - column < width ? static_cast<int>(columns - column) : width;
  for (int e = static_cast<int>(threadIdx.x); e < Tile<T>::edge * width; e += static_cast<int>(tile_threads)) {
    const int r = e / width, c = e % width;
    to[r * stride + c] = r < from.rows && c < left ? factor * from.data[r * from.stride + column + c] : T(0);
  }
}

/// z_rc = sum over d < depth of (factor left_rd) right_cd, added up with std::fma in the order of d. All threads call
/// it; `stage` may be in use until its first barrier.
template <class T>
__device__ void inner(Tile<T>& z, const TileRows<T>& left, const TileRows<T>& right, std::int64_t depth, T* stage,
                      T factor = T(1)) {
  using S = Tile<T>;
  T* other = stage + S::edge * S::depth_stride;
  z.clear();
  for (std::int64_t from = 0; from < depth; from += S::depth) {
    __syncthreads();
    stage_rows<T, S::depth, S::depth_stride>(stage, left, from, depth, factor);
    stage_rows<T, S::depth, S::depth_stride>(other, right, from, depth, T(1));
    __syncthreads();
    const int here = depth - from < S::depth ? static_cast<int>(depth - from) : S::depth;
    for (int d = 0; d < here; d += S::pack) {
      Pack<T> x[S::rows];
      for (int a = 0; a < S::rows; ++a) x[a] = read_pack(stage + S::row(a) * S::depth_stride + d);
      for (int b = 0; b < S::columns; ++b) {
        const Pack<T> y = read_pack(other + S::inner_column(b) * S::depth_stride + d);
        for (int a = 0; a < S::rows; ++a)
          for (int k = 0; k < S::pack; ++k) z.at[a][b] = std::fma(x[a].at[k], y.at[k], z.at[a][b]);
      }
    }
  }
}

/// A tile made by `inner` becomes an operand of `outer`, or its transpose does.
template <bool transposed, class T>
__device__ void keep(const Tile<T>& z, T* to) {
  using S = Tile<T>;
  for (int a = 0; a < S::rows; ++a)
    for (int b = 0; b < S::columns; ++b) {
      const int r = S::row(a), c = S::inner_column(b);
      to[transposed ? c * S::stride + r : r * S::stride + c] = z.at[a][b];
    }
}

/// z_rc += sum over k of kept_rk right_k,column+c, with `right` of `columns` columns. All threads call it after `keep`;
/// `kept` and `stage` are in use until the next barrier.
template <class T>
__device__ void outer(Tile<T>& z, const T* kept, const TileRows<T>& right, std::int64_t column, std::int64_t columns,
                      T* stage) {
  using S = Tile<T>;
  __syncthreads();
  stage_rows<T, S::edge, S::stride>(stage, right, column, columns, T(1));
  __syncthreads();
  for (int k = 0; k < right.rows; k += S::pack) {
    Pack<T> x[S::rows];
    for (int a = 0; a < S::rows; ++a) x[a] = read_pack(kept + S::row(a) * S::stride + k);
    for (int d = 0; d < S::pack; ++d)
      for (int b = 0; b < S::columns; b += S::pack) {
        const Pack<T> y = read_pack(stage + (k + d) * S::stride + S::outer_column(b));
        for (int a = 0; a < S::rows; ++a)
          for (int c = 0; c < S::pack; ++c) z.at[a][b + c] += x[a].at[d] * y.at[c];
      }
  }
}

}  // namespace phasor::cuda
