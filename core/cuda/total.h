#pragma once

#include "core/cuda/reduce.h"

// The sum of a whole array in double: every block adds up each `gridDim`-th group of `total_threads` elements, and one
// block what they found. The grid depends on the count alone, so the order of the sums does too.

namespace phasor::cuda {

constexpr unsigned total_threads = 256;

template <class Term>
__global__ void total_parts(Term term, std::int64_t count, double* parts) {
  __shared__ double shared[warp_size];
  double sum = 0.0;
  for (std::int64_t i = thread_index(); i < count; i += static_cast<std::int64_t>(gridDim.x) * total_threads)
    sum += term(i);
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

template <class T>
__global__ void add_parts(const T* parts, std::int64_t count, T* to) {
  __shared__ T shared[warp_size];
  T sum(0);
  for (std::int64_t i = threadIdx.x; i < count; i += total_threads) sum += parts[i];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) *to += sum;
}

/// *to += sum over i < count of term(i), where `term` is plain data with `__device__ double operator()(std::int64_t)
/// const`. Takes the scratch memory of the queue.
template <class Term>
void start_total(const Queue& queue, const Term& term, std::int64_t count, double* to) {
  constexpr std::int64_t own = 16, most_blocks = 1024;  // elements of a thread, below most_blocks
  const std::int64_t wanted = divide_up(count, total_threads * own);
  const std::int64_t blocks = wanted < most_blocks ? wanted : most_blocks;
  if (blocks == 0) return;
  double* parts = scratch<double>(queue, most_blocks);
  start(queue, dim3(static_cast<unsigned>(blocks)), dim3(total_threads), 0, total_parts<Term>, term, count, parts);
  start(queue, dim3(1), dim3(total_threads), 0, add_parts<double>, parts, blocks, to);
}

}  // namespace phasor::cuda
