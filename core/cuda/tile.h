#pragma once

#include <cmath>
#include <cstddef>

#include "core/cuda/launch.h"
#include "core/cuda/mma.h"

// Matrix products of small square tiles, for kernels that do more with a tile than a library would. A block of 128
// threads holds a tile in registers; the operands go through shared memory. Two kinds, with the same functions:
// `Tile`, in full f32 or f64: threads are 16 x 8, and thread (i, j) has rows i, i + 16, .., and of every row as many
// columns. Operands are read 16 bytes at a time, 3 reads for 32 multiply-adds in f32.
// `TensorTile`, for f32 whose operands are rounded to bf16 and whose sums are f32: core/cuda/mma.h.

namespace phasor::cuda {

constexpr unsigned tile_threads = 128;

template <class T>
struct Tile {
  using Element = T;
  using Operand = T;  // in shared memory
  static constexpr int edge = sizeof(T) == 4 ? 64 : 32;
  static constexpr int row_threads = 8;                       // neighbours in a warp that share their rows
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
  /// What a product makes of an element of an operand; an element that `keep` has written.
  __device__ static T operand(T x) { return x; }
  __device__ static T kept(T x) { return x; }
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

/// Warp w has rows 16 w .. 16 w + 15, of which a thread has two.
struct TensorTile {
  using Element = float;
  using Operand = Bf16;
  static constexpr int edge = 64, rows = 2, columns = 16, row_threads = 4, depth = 32;
  // Of rows in shared memory: rows g and columns t of a fragment (see mma.h) fall into 32 banks.
  static constexpr int depth_stride = depth + 8, stride = edge + 8;
  static constexpr int stage = 2 * edge * depth_stride, size = edge * stride;
  static_assert(stage >= size);

  float at[std::size_t{rows}][std::size_t{columns}];

  __device__ void clear() {
    for (auto& row : at)
      for (float& value : row) value = 0.0f;
  }
  __device__ static float operand(float x) { return rounded<bf16_mantissa>(x); }
  __device__ static float kept(Bf16 x) { return to_float(x); }
  __device__ static int group() { return static_cast<int>(lane_index()) / 4; }
  __device__ static int within() { return static_cast<int>(lane_index()) % 4; }
  __device__ static int row(int a) { return 16 * static_cast<int>(warp_index()) + group() + 8 * a; }
  __device__ static int inner_column(int b) { return 8 * (b / 2) + 2 * within() + b % 2; }
  __device__ static int outer_column(int b) { return inner_column(b); }

  /// += A B over 16 of k, from A [64, k] and the transpose of B [64, k], each in rows of `width` halves.
  template <int width>
  __device__ void add(const Bf16* left, const Bf16* right) {
    const auto word = [](const Bf16* rows_of, int r, int half) {
      return *reinterpret_cast<const std::uint32_t*>(rows_of + r * width + 2 * within() + 8 * half);
    };
    const std::uint32_t a[4] = {word(left, row(0), 0), word(left, row(1), 0), word(left, row(0), 1),
                                word(left, row(1), 1)};
    PHASOR_UNROLL
    for (int n = 0; n < edge / 8; ++n) {
      const std::uint32_t b[2] = {word(right, 8 * n + group(), 0), word(right, 8 * n + group(), 1)};
      float c[4] = {at[0][2 * n], at[0][2 * n + 1], at[1][2 * n], at[1][2 * n + 1]};
      mma_bf16(c, a, b);
      at[0][2 * n] = c[0], at[0][2 * n + 1] = c[1], at[1][2 * n] = c[2], at[1][2 * n + 1] = c[3];
    }
  }
};

/// As stage_rows, `depth` columns, rounded.
__device__ inline void stage_pairs(Bf16* to, const TileRows<float>& from, std::int64_t column, std::int64_t columns,
                                   float factor) {
  using S = TensorTile;
  const int left = columns - column < S::depth ? static_cast<int>(columns - column) : S::depth;
  constexpr int pairs = S::depth / 2;
  for (int e = static_cast<int>(threadIdx.x); e < S::edge * pairs; e += static_cast<int>(tile_threads)) {
    const int r = e / pairs, c = 2 * (e % pairs);
    const float* x = from.data + r * from.stride + column + c;
    const float first = r < from.rows && c < left ? factor * x[0] : 0.0f;
    const float second = r < from.rows && c + 1 < left ? factor * x[1] : 0.0f;
    *reinterpret_cast<std::uint32_t*>(to + r * S::depth_stride + c) = bf16_pair(first, second);
  }
}

__device__ inline void inner(TensorTile& z, const TileRows<float>& left, const TileRows<float>& right,
                             std::int64_t depth, Bf16* stage, float factor = 1.0f) {
  using S = TensorTile;
  Bf16* other = stage + S::edge * S::depth_stride;
  z.clear();
  for (std::int64_t from = 0; from < depth; from += S::depth) {
    __syncthreads();
    stage_pairs(stage, left, from, depth, factor);
    stage_pairs(other, right, from, depth, 1.0f);
    __syncthreads();
    for (int d = 0; d < S::depth; d += 16) z.add<S::depth_stride>(stage + d, other + d);
  }
}

template <bool transposed>
__device__ void keep(const TensorTile& z, Bf16* to) {
  using S = TensorTile;
  for (int a = 0; a < S::rows; ++a)
    for (int b = 0; b < S::columns; b += 2) {
      const int r = S::row(a), c = S::inner_column(b);
      if constexpr (transposed) {
        to[c * S::stride + r] = to_bf16(z.at[a][b]);
        to[(c + 1) * S::stride + r] = to_bf16(z.at[a][b + 1]);
      } else {
        *reinterpret_cast<std::uint32_t*>(to + r * S::stride + c) = bf16_pair(z.at[a][b], z.at[a][b + 1]);
      }
    }
}

__device__ inline void outer(TensorTile& z, const Bf16* kept, const TileRows<float>& right, std::int64_t column,
                             std::int64_t columns, Bf16* stage) {
  using S = TensorTile;
  const int left = columns - column < S::edge ? static_cast<int>(columns - column) : S::edge;
  __syncthreads();
  for (int e = static_cast<int>(threadIdx.x); e < S::edge * S::edge / 2; e += static_cast<int>(tile_threads)) {
    const int k = 2 * (e / S::edge), c = e % S::edge;  // transposed: neighbours in k share a word
    const float* x = right.data + k * right.stride + column + c;
    const float first = k < right.rows && c < left ? x[0] : 0.0f;
    const float second = k + 1 < right.rows && c < left ? x[right.stride] : 0.0f;
    *reinterpret_cast<std::uint32_t*>(stage + c * S::stride + k) = bf16_pair(first, second);
  }
  __syncthreads();
  for (int k = 0; k < S::edge; k += 16) z.add<S::stride>(kept + k, stage + k);
}

}  // namespace phasor::cuda
