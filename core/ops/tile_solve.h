#pragma once

#include <cstddef>
#include <cstdint>

#include "core/ops/tile_product.h"

// Triangular systems that are as small as the products of tile_product.h, with as many columns as a state has: six rows
// times two vectors of columns stay in registers while the earlier rows are subtracted, then each other.

namespace phasor::tile {

/// What to solve: for rows r = 0, 1, ..:  z_r -= sum_{p < r} lower_rp x_p,  x_r = factor_r z_r. With negative strides
/// it runs from the last row to the first.
template <class T>
struct Substitution {
  Left<T> lower;
  Rows<T> z, x;
  const T* factors;
  std::int64_t factor_step;
};

template <class T, std::size_t rows, std::size_t columns>
void register_solve(const Substitution<T>& s, std::int64_t first, std::int64_t column) {
  Vector<T> sum[rows][columns];
  T* z = s.z.data + first * s.z.stride + column;
  T* x = s.x.data + first * s.x.stride + column;
  const T* lower = s.lower.data + first * s.lower.row;
  const auto at = [](std::int64_t stride, std::size_t r, std::size_t j) {
    return static_cast<std::int64_t>(r) * stride + static_cast<std::int64_t>(j) * lanes<T>;
  };
#pragma GCC unroll 6
  for (std::size_t r = 0; r < rows; ++r)
#pragma GCC unroll 2
    for (std::size_t j = 0; j < columns; ++j) sum[r][j] = load(z + at(s.z.stride, r, j));
  for (std::int64_t p = 0; p < first; ++p) {
    const T* known = s.x.data + p * s.x.stride + column;
    Vector<T> value[columns];
#pragma GCC unroll 2
    for (std::size_t j = 0; j < columns; ++j) value[j] = load(known + at(0, 0, j));
#pragma GCC unroll 6
    for (std::size_t r = 0; r < rows; ++r) {
      const T factor = lower[static_cast<std::int64_t>(r) * s.lower.row + p * s.lower.depth];
#pragma GCC unroll 2
      for (std::size_t j = 0; j < columns; ++j) sum[r][j] -= value[j] * factor;
    }
  }
  Vector<T> solved[rows][columns];
#pragma GCC unroll 6
  for (std::size_t r = 0; r < rows; ++r) {
#pragma GCC unroll 6
    for (std::size_t p = 0; p < r; ++p) {
      const T factor =
          lower[static_cast<std::int64_t>(r) * s.lower.row + (first + static_cast<std::int64_t>(p)) * s.lower.depth];
#pragma GCC unroll 2
      for (std::size_t j = 0; j < columns; ++j) sum[r][j] -= solved[p][j] * factor;
    }
    const T factor = s.factors[(first + static_cast<std::int64_t>(r)) * s.factor_step];
#pragma GCC unroll 2
    for (std::size_t j = 0; j < columns; ++j) {
      solved[r][j] = sum[r][j] * factor;
      store(z + at(s.z.stride, r, j), sum[r][j]);
      store(x + at(s.x.stride, r, j), solved[r][j]);
    }
  }
}

template <class T, std::size_t columns>
void register_solve_rows(std::int64_t rows, const Substitution<T>& s, std::int64_t first, std::int64_t column) {
  switch (rows) {
    case 1:
      return register_solve<T, 1, columns>(s, first, column);
    case 2:
      return register_solve<T, 2, columns>(s, first, column);
    case 3:
      return register_solve<T, 3, columns>(s, first, column);
    case 4:
      return register_solve<T, 4, columns>(s, first, column);
    case 5:
      return register_solve<T, 5, columns>(s, first, column);
    default:
      return register_solve<T, 6, columns>(s, first, column);
  }
}

/// z and x [rows, columns]; columns is a multiple of `lanes`.
template <class T>
void solve(std::int64_t rows, std::int64_t columns, const Substitution<T>& s) {
  constexpr std::int64_t pair = 2 * lanes<T>;
  for (std::int64_t j = 0; j < columns; j += pair)
    for (std::int64_t i = 0; i < rows; i += row_block) {
      if (columns - j >= pair)
        register_solve_rows<T, 2>(rows - i, s, i, j);
      else
        register_solve_rows<T, 1>(rows - i, s, i, j);
    }
}

}  // namespace phasor::tile
