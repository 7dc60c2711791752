#pragma once

#include "core/cuda/launch.h"

// Sums in a fixed order, so that the same data give the same bits. No float is ever added to by an atomic operation.

namespace phasor::cuda {

constexpr unsigned whole_warp = 0xffffffffu;

/// Of a value per lane; every lane gets it. All 32 lanes take part.
template <class T>
__device__ T warp_sum(T value) {
  for (unsigned apart = warp_size / 2; apart > 0; apart /= 2)
    value += __shfl_xor_sync(whole_warp, value, static_cast<int>(apart));
  return value;
}
template <class T>
__device__ T warp_max(T value) {
  for (unsigned apart = warp_size / 2; apart > 0; apart /= 2) {
    const T other = __shfl_xor_sync(whole_warp, value, static_cast<int>(apart));
    value = other > value ? other : value;
  }
  return value;
}

/// Of a value per thread of a block of whole warps in x; every thread gets it. `shared`: 32 elements of shared memory,
/// which may be used again after the next barrier.
template <class T>
__device__ T block_sum(T value, T* shared) {
  value = warp_sum(value);
  if (lane_index() == 0) shared[warp_index()] = value;
  __syncthreads();
  return warp_sum(lane_index() < blockDim.x / warp_size ? shared[lane_index()] : T(0));
}

constexpr unsigned column_block = 32, row_block = 32;

/// to[i] += sum over r < rows of term(r, i), i < width. `term` is plain data with `__device__ T operator()(r, i)
/// const`.
template <class T, class Term>
__global__ void add_column_sums(Term term, T* to, std::int64_t rows, std::int64_t width) {
  __shared__ T parts[row_block][column_block + 1];
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * column_block + threadIdx.x;
  T sum(0);
  if (i < width)
    for (std::int64_t r = threadIdx.y; r < rows; r += row_block) sum += term(r, i);
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  // Warp y takes column y: its lanes are the partial sums.
  const T total = warp_sum(parts[threadIdx.x][threadIdx.y]);
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * column_block + threadIdx.y;
  if (threadIdx.x == 0 && column < width) to[column] += total;
}

/// Starts it: the way to the gradient of a weight that all rows share.
template <class T, class Term>
void start_column_sums(const Queue& queue, const Term& term, T* to, std::int64_t rows, std::int64_t width) {
  start(queue, dim3(static_cast<unsigned>(divide_up(width, column_block))), dim3(column_block, row_block), 0,
        add_column_sums<T, Term>, term, to, rows, width);
}

}  // namespace phasor::cuda
