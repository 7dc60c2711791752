#pragma once

#include <cstdint>

#include "core/tensor/view.h"

namespace phasor::ops {

/// Asks for a row that is needed soon. For kernels whose rows are columns of a matrix product: no two follow each other in
/// memory, and the processor does not foresee the next one.
template <bool write, class T>
inline void prefetch(const T* from, std::int64_t count) {
  constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = 0; i < count; i += line) __builtin_prefetch(from + i, write ? 1 : 0);
}

/// The same for row r of a view, unless there is no such row or no view.
template <bool write, class T>
inline void prefetch_row(const View& view, std::int64_t r, std::int64_t rows, std::int64_t count) {
  if (view.data != nullptr && r < rows) prefetch<write>(row<T>(view, r), count);
}

}  // namespace phasor::ops
