#pragma once

#include "core/cuda/reduce.h"
#include "core/tensor/view.h"

// Rows of elements shared out among threads: neighbours in a warp take neighbours in memory, short rows leave few lanes
// idle, and no element costs a division.

namespace phasor::cuda {

/// Elements of one row that a thread takes: first, first + step, .. below end. None where the row is not there (end is
/// 0), so that its lanes still meet the others of the warp.
struct Share {
  std::int64_t row, first, end, step;
  bool there;
};

constexpr unsigned share_threads = 256;
constexpr unsigned in_flight = 4;  // elements that a thread reads before it writes

/// Lanes side by side on one row: a power of two, at most a warp.
constexpr unsigned lanes_for(std::int64_t width) {
  unsigned lanes = 1;
  while (lanes < warp_size && lanes < width) lanes *= 2;
  return lanes;
}

/// Starts threads for all elements of `rows` rows that have nothing to do with each other; see own_share.
template <class... Parameters, class... Args>
void start_rows(const Queue& queue, std::int64_t rows, std::int64_t width, void (*kernel)(Parameters...),
                const Args&... args) {
  const unsigned lanes = lanes_for(width), high = share_threads / lanes;
  const std::int64_t pieces = divide_up(width, in_flight * lanes), most = 65535;
  start(queue, dim3(static_cast<unsigned>(divide_up(rows, high)), static_cast<unsigned>(pieces < most ? pieces : most)),
        dim3(lanes, high), 0, kernel, args...);
}

/// Starts a team of lanes_for(width) lanes for each of `count` vectors; see own_vector.
template <class... Parameters, class... Args>
void start_vectors(const Queue& queue, std::int64_t count, std::int64_t width, void (*kernel)(Parameters...),
                   const Args&... args) {
  const unsigned lanes = lanes_for(width), high = share_threads / lanes;
  start(queue, dim3(static_cast<unsigned>(divide_up(count, high))), dim3(lanes, high), 0, kernel, args...);
}

/// Of a thread of start_rows: a part of a row. Of start_vectors: its lane's part of the whole vector.
__device__ inline Share own_share(std::int64_t rows, std::int64_t width) {
  const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  const bool there = r < rows;
  return {there ? r : 0, static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x, there ? width : 0,
          static_cast<std::int64_t>(gridDim.y) * blockDim.x, there};
}

/// Of a value per lane of a team; every lane of it gets it. All teams of the warp take part.
template <class T>
__device__ T team_sum(T value) {
  for (unsigned apart = blockDim.x / 2; apart > 0; apart /= 2)
    value += __shfl_xor_sync(whole_warp, value, static_cast<int>(apart));
  return value;
}

/// Sum of value(i) over the elements of a team's vector, for every lane.
template <class T, class Value>
__device__ T sum_of(const Share& at, const Value& value) {
  T sum(0);
  for (std::int64_t i = at.first; i < at.end; i += at.step) sum += value(i);
  return team_sum(sum);
}

/// put(i, value(i)) for the elements of a share: some values before the first is put, so that several reads are under
/// way at a time. value(i) reads nothing that put writes for another element.
template <class Value, class Put>
__device__ void each(const Share& at, const Value& value, const Put& put) {
  for (std::int64_t start = at.first; start < at.end; start += in_flight * at.step) {
    decltype(value(start)) values[in_flight] = {};
    for (unsigned k = 0; k < in_flight; ++k)
      if (start + k * at.step < at.end) values[k] = value(start + k * at.step);
    for (unsigned k = 0; k < in_flight; ++k)
      if (start + k * at.step < at.end) put(start + k * at.step, values[k]);
  }
}

/// The same for one result, which may be absent.
template <class T, class Value>
__device__ void write_each(const Share& at, T* to, bool accumulate, const Value& value) {
  if (to == nullptr) return;
  each(
      at, [&](std::int64_t i) { return accumulate ? to[i] + value(i) : value(i); },
      [&](std::int64_t i, T result) { to[i] = result; });
}

/// Null where the operand is absent.
template <class T>
__device__ T* optional_row(const View& view, std::int64_t index) {
  return view.data != nullptr ? row<T>(view, index) : nullptr;
}

/// Two results of one element.
template <class T>
struct Pair {
  T first, second;
};

/// Writes pairs to two gradients, each of which may be absent or be added to.
template <class T>
struct PairTarget {
  T* first;
  bool add_first;
  T* second;
  bool add_second;
  __device__ Pair<T> sum(std::int64_t i, Pair<T> value) const {
    if (first != nullptr && add_first) value.first += first[i];
    if (second != nullptr && add_second) value.second += second[i];
    return value;
  }
  __device__ void operator()(std::int64_t i, const Pair<T>& value) const {
    if (first != nullptr) first[i] = value.first;
    if (second != nullptr) second[i] = value.second;
  }
};

}  // namespace phasor::cuda
