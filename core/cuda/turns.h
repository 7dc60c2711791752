#pragma once

#include "core/cuda/shares.h"

// Vectors that share a weight, a few of them one after the other for each team of lanes: a lane meets the same columns
// each time, has a whole vector's part of them in registers, and adds up there what the gradient of the weight gets.

namespace phasor::cuda {

constexpr unsigned columns_kept = 8;                                                    // of a lane
constexpr std::int64_t widest_kept = static_cast<std::int64_t>(columns_kept) * share_threads;  // of a vector

/// Lanes of a team: as lanes_for, and more where a warp would have more columns than it keeps.
constexpr unsigned lanes_in_turns(std::int64_t width) {
  unsigned lanes = lanes_for(width);
  while (lanes * columns_kept < width) lanes *= 2;
  return lanes;
}

/// Values of a lane's columns: of column own_column(k) at k.
template <class T>
using Kept = T[columns_kept];
__device__ inline std::int64_t own_column(unsigned k) { return threadIdx.x + static_cast<std::int64_t>(k) * blockDim.x; }

/// For each vector of the team in turn: vector(v, there). Teams without one left are not `there`, and meet the others.
template <class Vector>
__device__ void in_turns(std::int64_t vectors, const Vector& vector) {
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.y; first < vectors;
       first += static_cast<std::int64_t>(gridDim.x) * blockDim.y)
    vector(first + threadIdx.y < vectors ? first + threadIdx.y : 0, first + threadIdx.y < vectors);
}

/// Of a value per lane of a team, of any number of warps; every lane gets it. All threads of the block take part.
template <class T>
__device__ T turn_sum(T value) {
  if (blockDim.x <= warp_size) return team_sum(value);
  __shared__ T sums[share_threads / warp_size];
  const unsigned warps = blockDim.x / warp_size, first = threadIdx.y * warps;
  value = warp_sum(value);
  __syncthreads();
  if (threadIdx.x % warp_size == 0) sums[first + threadIdx.x / warp_size] = value;
  __syncthreads();
  T sum(0);
  for (unsigned w = 0; w < warps; ++w) sum += sums[first + w];
  return sum;
}

/// sums[block][column] = what the block's teams have kept. All threads of the block take part.
template <class T>
__device__ void put_kept(const Kept<T>& kept, T* sums, std::int64_t width) {
  __shared__ T parts[share_threads];
  for (unsigned k = 0; k < columns_kept; ++k) {
    __syncthreads();
    parts[threadIdx.y * blockDim.x + threadIdx.x] = kept[k];
    __syncthreads();
    if (threadIdx.y != 0 || own_column(k) >= width) continue;
    T sum(0);
    for (unsigned team = 0; team < blockDim.y; ++team) sum += parts[team * blockDim.x + threadIdx.x];
    sums[blockIdx.x * width + own_column(k)] = sum;
  }
}

/// Blocks for vectors in turns: enough to hide the latency of memory, each with some vectors for every team.
inline std::int64_t blocks_in_turns(std::int64_t vectors, std::int64_t width) {
  constexpr std::int64_t most = 1024, turns = 8;
  const std::int64_t blocks = divide_up(vectors, turns * (share_threads / lanes_in_turns(width)));
  return blocks < most ? blocks : most;
}

/// Starts kernel(args.., sums) with blocks_in_turns(vectors, width) blocks.
template <class... Parameters, class... Args>
void start_turns(const Queue& queue, std::int64_t vectors, std::int64_t width, void (*kernel)(Parameters...),
                 const Args&... args) {
  const unsigned lanes = lanes_in_turns(width);
  start(queue, dim3(static_cast<unsigned>(blocks_in_turns(vectors, width))), dim3(lanes, share_threads / lanes), 0,
        kernel, args...);
}

/// to[column] += the sums of all blocks.
template <class T>
void add_kept(const Queue& queue, const T* sums, T* to, std::int64_t vectors, std::int64_t width) {
  start_column_sums(queue, PartTerm<T>{sums, width}, to, blocks_in_turns(vectors, width), width);
}

}  // namespace phasor::cuda
