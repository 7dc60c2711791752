#pragma once

#include <cstddef>
#include <cstdint>

#include "core/ops/simd.h"
#include "core/ops/tile_stride.h"

// Products of matrices that are too small for a GEMM library, whose call alone costs microseconds, for kernels that
// work tile by tile (attention). A block of 6 rows times two vectors of columns is summed in registers: the 12 chains
// of fused multiply-adds keep both units of an AVX2 core busy. docs/attention.md has the numbers.

namespace phasor::tile {

using simd::lanes;
using simd::load;
using simd::store;
using simd::Vector;

/// What happens to C: it becomes the product, gets it added, or is first multiplied by one factor per row.
enum class Into { overwrite, add, rescale };

/// A of C = A B: element (r, p) stands at data[r * row + p * depth], so that a transposed matrix needs no copy.
template <class T>
struct Left {
  const T* data;
  std::int64_t row, depth;
};
/// B and C: rows of neighbouring elements.
template <class T>
struct Rows {
  T* data;
  std::int64_t stride;
};

struct Range {
  std::int64_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
};

template <class T, Into into, std::size_t rows, std::size_t columns>
void register_product(const Left<T>& left, const T* b, std::int64_t b_row, T* c, std::int64_t c_row, std::int64_t depth,
                      [[maybe_unused]] const T* factors) {
  constexpr std::int64_t n = lanes<T>;
  Vector<T> sum[rows][columns];
#pragma GCC unroll 6
  for (std::size_t r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (std::size_t j = 0; j < columns; ++j) {
      const T* at = c + static_cast<std::int64_t>(r) * c_row + static_cast<std::int64_t>(j) * n;
      if constexpr (into == Into::overwrite) sum[r][j] = Vector<T>{};
      if constexpr (into == Into::add) sum[r][j] = load(at);
      if constexpr (into == Into::rescale) sum[r][j] = load(at) * factors[r];
    }
  const T* a = left.data;
  do {  // the depth is positive: without an arm that skips the loop, the sums stay in registers
    Vector<T> x[columns];
#pragma GCC unroll 2
    for (std::size_t j = 0; j < columns; ++j) x[j] = load(b + static_cast<std::int64_t>(j) * n);
#pragma GCC unroll 6
    for (std::size_t r = 0; r < rows; ++r) {
      const T y = a[static_cast<std::int64_t>(r) * left.row];
#pragma GCC unroll 2
      for (std::size_t j = 0; j < columns; ++j) sum[r][j] += x[j] * y;
    }
    a += left.depth;
    b += b_row;
  } while (--depth > 0);
#pragma GCC unroll 6
  for (std::size_t r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (std::size_t j = 0; j < columns; ++j)
      store(c + static_cast<std::int64_t>(r) * c_row + static_cast<std::int64_t>(j) * n, sum[r][j]);
}

template <class T, Into into, std::size_t columns>
void register_rows(std::int64_t rows, const Left<T>& left, const T* b, std::int64_t b_row, T* c, std::int64_t c_row,
                   std::int64_t depth, const T* factors) {
  switch (rows) {
    case 1: return register_product<T, into, 1, columns>(left, b, b_row, c, c_row, depth, factors);
    case 2: return register_product<T, into, 2, columns>(left, b, b_row, c, c_row, depth, factors);
    case 3: return register_product<T, into, 3, columns>(left, b, b_row, c, c_row, depth, factors);
    case 4: return register_product<T, into, 4, columns>(left, b, b_row, c, c_row, depth, factors);
    case 5: return register_product<T, into, 5, columns>(left, b, b_row, c, c_row, depth, factors);
    default: return register_product<T, into, 6, columns>(left, b, b_row, c, c_row, depth, factors);
  }
}

/// C [rows, columns] from A [rows, depth] B [depth, columns]; columns is a multiple of `lanes`. `depth_of(row, column)`
/// gives, for the six rows and two vectors of columns that begin there, the part of the depth that counts; where it is
/// empty, C is left alone.
template <class T, Into into, class DepthOf>
void product(std::int64_t rows, std::int64_t columns, const Left<T>& a, const Rows<const T>& b, const Rows<T>& c,
             const DepthOf& depth_of, const T* factors = nullptr) {
  constexpr std::int64_t pair = 2 * lanes<T>;
  for (std::int64_t j = 0; j < columns; j += pair) {
    for (std::int64_t i = 0; i < rows; i += row_block) {
      const Range depth = depth_of(i, j);
      if (depth.empty()) continue;
      const Left<T> left{a.data + i * a.row + depth.begin * a.depth, a.row, a.depth};
      const T* right = b.data + depth.begin * b.stride + j;
      T* out = c.data + i * c.stride + j;
      const T* scale = into == Into::rescale ? factors + i : nullptr;
      if (columns - j >= pair)
        register_rows<T, into, 2>(rows - i, left, right, b.stride, out, c.stride, depth.end - depth.begin, scale);
      else
        register_rows<T, into, 1>(rows - i, left, right, b.stride, out, c.stride, depth.end - depth.begin, scale);
    }
  }
}

inline void transpose_block(const float* from, std::int64_t stride, float* to, std::int64_t to_stride) {
  Vector<float> r[8], t[8], u[8];
  for (int i = 0; i < 8; ++i) r[i] = load(from + i * stride);
  for (int i = 0; i < 8; i += 2) {
    t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    t[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4)
    for (int k = 0; k < 2; ++k) {
      u[i + 2 * k] = __builtin_shufflevector(t[i + k], t[i + k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      u[i + 2 * k + 1] = __builtin_shufflevector(t[i + k], t[i + k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int k = 0; k < 4; ++k) {
    store(to + k * to_stride, __builtin_shufflevector(u[k], u[k + 4], 0, 1, 2, 3, 8, 9, 10, 11));
    store(to + (k + 4) * to_stride, __builtin_shufflevector(u[k], u[k + 4], 4, 5, 6, 7, 12, 13, 14, 15));
  }
}

inline void transpose_block(const double* from, std::int64_t stride, double* to, std::int64_t to_stride) {
  Vector<double> r[4], t[4];
  for (int i = 0; i < 4; ++i) r[i] = load(from + i * stride);
  for (int i = 0; i < 4; i += 2) {
    t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 4, 2, 6);
    t[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 1, 5, 3, 7);
  }
  for (int k = 0; k < 2; ++k) {
    store(to + k * to_stride, __builtin_shufflevector(t[k], t[k + 2], 0, 1, 4, 5));
    store(to + (k + 2) * to_stride, __builtin_shufflevector(t[k], t[k + 2], 2, 3, 6, 7));
  }
}

/// to[c][r] = from[r][c].
template <class T>
void transpose(std::int64_t rows, std::int64_t columns, const Rows<const T>& from, const Rows<T>& to) {
  constexpr std::int64_t n = lanes<T>;
  const std::int64_t whole_rows = rows / n * n, whole_columns = columns / n * n;
  for (std::int64_t r = 0; r < whole_rows; r += n)
    for (std::int64_t c = 0; c < whole_columns; c += n)
      transpose_block(from.data + r * from.stride + c, from.stride, to.data + c * to.stride + r, to.stride);
  for (std::int64_t c = 0; c < columns; ++c)
    for (std::int64_t r = c < whole_columns ? whole_rows : 0; r < rows; ++r)
      to.data[c * to.stride + r] = from.data[r * from.stride + c];
}

}  // namespace phasor::tile
