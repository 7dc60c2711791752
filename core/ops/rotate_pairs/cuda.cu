#include <algorithm>

#include "core/cuda/kernels.h"
#include "core/cuda/math.h"
#include "core/ops/rotate_pairs/kernel.h"

namespace phasor::ops {

namespace {

/// What a thread takes: a plane of one head in queries and keys, or an element that does not rotate.
struct Slot {
  std::int64_t row, head;
  std::int64_t first, second;  // elements; second < 0: passes through
  std::int64_t angle_row, angle;
};

__device__ Slot own_slot(const RotatePairsShape& s, std::int64_t heads) {
  const std::int64_t slots = s.width - s.planes;
  const auto [vector, slot] = cuda::place_of(cuda::thread_index(), slots);
  const auto [r, head] = cuda::place_of(vector, heads);
  if (slot >= s.planes) return {r, head, head * s.width + s.planes + slot, -1, 0, 0};
  const std::int64_t start = head * s.width;
  return {r,
          head,
          start + (s.interleaved ? 2 * slot : slot),
          start + (s.interleaved ? 2 * slot + 1 : slot + s.planes),
          s.by_time ? r % s.time : r,
          s.shared ? slot : head * s.planes + slot};
}

template <class T>
struct Turn {
  T sin, cos;
};
template <class T>
__device__ Turn<T> turn_of(const View& angle, const Slot& at) {
  if (at.second < 0) return {T(0), T(1)};
  const T x = row<T>(angle, at.angle_row)[at.angle];
  return {std::sin(x), std::cos(x)};
}

template <class T>
__device__ void rotate(const View& from, const View& to, const Slot& at, const Turn<T>& turn) {
  const T* x = row<T>(from, at.row);
  T* y = row<T>(to, at.row);
  const T a = x[at.first];
  if (at.second < 0) {
    y[at.first] = a;
    return;
  }
  const T b = x[at.second];
  y[at.first] = a * turn.cos - b * turn.sin;
  y[at.second] = a * turn.sin + b * turn.cos;
}

template <class T>
__global__ void forward_slot(RotatePairsForward a, std::int64_t heads) {
  const Slot at = own_slot(a.shape, heads);
  if (at.row >= a.shape.batch * a.shape.time) return;
  const Turn<T> turn = turn_of<T>(a.angle, at);
  if (at.head < a.q_heads) rotate<T>(a.q, a.rotated_q, at, turn);
  if (at.head < a.k_heads) rotate<T>(a.k, a.rotated_k, at, turn);
}

template <class T>
__device__ void rotate_back(const View& from, const View& to, bool accumulate, const Slot& at, const Turn<T>& turn) {
  const T* dy = row<T>(from, at.row);
  T* dx = row<T>(to, at.row);
  const auto put = [&](std::int64_t i, T value) { dx[i] = accumulate ? dx[i] + value : value; };
  const T a = dy[at.first];
  if (at.second < 0) return put(at.first, a);
  const T b = dy[at.second];
  put(at.first, a * turn.cos + b * turn.sin);
  put(at.second, b * turn.cos - a * turn.sin);
}

/// d angle: db' a' - da' b'.
template <class T>
__device__ T slope(const View& rotated, const View& drotated, const Slot& at) {
  if (drotated.data == nullptr) return T(0);
  const T* y = row<T>(rotated, at.row);
  const T* dy = row<T>(drotated, at.row);
  return dy[at.second] * y[at.first] - dy[at.first] * y[at.second];
}

template <class T>
__global__ void backward_slot(RotatePairsBackward a, std::int64_t heads) {
  const Slot at = own_slot(a.shape, heads);
  if (at.row >= a.shape.batch * a.shape.time) return;
  const Turn<T> turn = turn_of<T>(a.angle, at);
  if (a.dangle.data != nullptr && at.second >= 0) {  // angles of their own: as many heads in queries as in keys
    const T sum = slope<T>(a.rotated_q, a.drotated_q, at) + slope<T>(a.rotated_k, a.drotated_k, at);
    T& dangle = row<T>(a.dangle, at.row)[at.angle];
    dangle = a.accumulate_angle ? dangle + sum : sum;
  }
  if (a.drotated_q.data != nullptr && a.dq.data != nullptr && at.head < a.q_heads)
    rotate_back<T>(a.drotated_q, a.dq, a.accumulate_q, at, turn);
  if (a.drotated_k.data != nullptr && a.dk.data != nullptr && at.head < a.k_heads)
    rotate_back<T>(a.drotated_k, a.dk, a.accumulate_k, at, turn);
}

/// A thread for every slot of the side that has more heads.
template <class Args>
void start_slots(const cuda::Queue& queue, const Args& a, void (*kernel)(Args, std::int64_t)) {
  const RotatePairsShape& s = a.shape;
  const std::int64_t heads = std::max(a.q_heads, a.k_heads);
  cuda::start_each(queue, s.batch * s.time * heads * (s.width - s.planes), kernel, a, heads);
}

template <class T>
void forward(const cuda::Queue& queue, const RotatePairsForward& a) {
  start_slots(queue, a, forward_slot<T>);
}

template <class T>
void backward(const cuda::Queue& queue, const RotatePairsBackward& a) {
  start_slots(queue, a, backward_slot<T>);
}

}  // namespace

void rotate_pairs_cuda(cuda::Kernels& kernels) {
  kernels.add(rotate_pairs_forward, forward<float>, forward<double>);
  kernels.add(rotate_pairs_backward, backward<float>, backward<double>);
}

}  // namespace phasor::ops
