#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/error.h"

namespace phasor::cuda {

class Products;
class Sdpa;

/// What the host part of a room's cuda.cu gets: the queue that its kernels join, in order.
struct Queue {
  void* stream = nullptr;        // cudaStream_t
  Products* products = nullptr;  // the library of matrix products; see gemm.h
  /// Memory for the length of one launch(), e.g. for partial sums; holds nothing at its beginning.
  void* scratch = nullptr;
  std::size_t scratch_bytes = 0;
  Sdpa* sdpa = nullptr;  // a library's attention; null where there is none; see sdpa.h
};

constexpr std::size_t sums_bytes = 128 << 10;  // the end of the scratch memory, which start_column_sums takes

/// `count` elements of the queue's scratch memory: the whole of it is one array, so ask once in a launch.
template <class T>
T* scratch(const Queue& queue, std::int64_t count) {
  PHASOR_CHECK(static_cast<std::size_t>(count) * sizeof(T) + sums_bytes <= queue.scratch_bytes,
               std::to_string(count) + " elements of scratch memory");
  return static_cast<T*>(queue.scratch);
}

/// For start_column_sums, beside `scratch`.
template <class T>
T* sums_scratch(const Queue& queue, std::int64_t count) {
  PHASOR_CHECK(static_cast<std::size_t>(count) * sizeof(T) <= sums_bytes && sums_bytes <= queue.scratch_bytes,
               std::to_string(count) + " sums of columns");
  return reinterpret_cast<T*>(static_cast<std::byte*>(queue.scratch) + (queue.scratch_bytes - sums_bytes));
}

}  // namespace phasor::cuda
