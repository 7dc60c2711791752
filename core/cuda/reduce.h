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

/// For a block of column_block x row_block threads, all of which take part: the sum over begin <= r < end of term(r,
/// i). That of column i = first + y, if it is below width, goes to the lanes of warp y. `shared` may be used again
/// after the next barrier.
template <class T, class Term>
__device__ T column_sum(const Term& term, std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t width,
                        T (&shared)[row_block][column_block + 1]) {
  const std::int64_t i = first + threadIdx.x;
  T sum(0);
  if (i < width)
    for (std::int64_t r = begin + threadIdx.y; r < end; r += row_block) sum += term(r, i);
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  return warp_sum(shared[threadIdx.x][threadIdx.y]);
}

/// Block (columns, part): to[part * width + i] = or += the sum over the rows of the part.
template <class T, class Term>
__global__ void column_sums(Term term, T* to, std::int64_t rows, std::int64_t rows_each, std::int64_t width,
                            bool accumulate) {
  __shared__ T parts[row_block][column_block + 1];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * column_block, column = first + threadIdx.y;
  const std::int64_t begin = blockIdx.y * rows_each, end = begin + rows_each;
  const T total = column_sum(term, begin, end < rows ? end : rows, first, width, parts);
  if (threadIdx.x != 0 || column >= width) return;
  T& sum = to[blockIdx.y * width + column];
  sum = accumulate ? sum + total : total;
}

template <class T>
struct PartTerm {
  const T* sums;
  std::int64_t width;
  __device__ T operator()(std::int64_t part, std::int64_t i) const { return sums[part * width + i]; }
};

/// to[i] += sum over r < rows of term(r, i), i < width: the way to the gradient of a weight that all rows share. `term`
/// is plain data with `__device__ T operator()(r, i) const`. Few columns would leave most of a device idle, so the rows
/// are cut into parts too, whose sums are then added in order. What is cut depends on the sizes alone.
template <class T, class Term>
void start_column_sums(const Queue& queue, const Term& term, T* to, std::int64_t rows, std::int64_t width) {
  constexpr std::int64_t enough = 256;  // blocks: two on each of about 130 multiprocessors
  const std::int64_t columns = divide_up(width, column_block);
  if (columns == 0) return;
  const std::int64_t wanted = divide_up(enough, columns), possible = divide_up(rows, 8 * row_block);
  const std::int64_t parts = wanted < possible ? wanted : possible;
  const dim3 threads(column_block, row_block);
  const auto x = static_cast<unsigned>(columns);
  if (parts <= 1) {
    start(queue, dim3(x), threads, 0, column_sums<T, Term>, term, to, rows, rows, width, true);
    return;
  }
  T* sums = sums_scratch<T>(queue, parts * width);
  start(queue, dim3(x, static_cast<unsigned>(parts)), threads, 0, column_sums<T, Term>, term, sums, rows,
        divide_up(rows, parts), width, false);
  start(queue, dim3(x), threads, 0, column_sums<T, PartTerm<T>>, PartTerm<T>{sums, width}, to, parts, parts, width,
        true);
}

}  // namespace phasor::cuda
