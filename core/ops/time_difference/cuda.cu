#include "core/cuda/kernels.h"
#include "core/cuda/shares.h"
#include "core/ops/time_difference/kernel.h"

namespace phasor::ops {

namespace {

__device__ bool begins(const View& starts, std::int64_t b, std::int64_t t) {
  return starts.data != nullptr && row<const std::int32_t>(starts, b)[t] == t;
}

template <class T>
__global__ void forward_tokens(TimeDifferenceForward a) {
  const auto at = cuda::own_share(a.batch * a.time, a.width);
  const auto [b, t] = cuda::place_of(at.row, a.time);
  const T* x = row<T>(a.x, at.row);
  const T* last = t > 0 ? row<T>(a.x, at.row - 1) : cuda::optional_row<T>(a.state_in, b);
  if (begins(a.starts, b, t)) last = nullptr;
  cuda::write_each(at, row<T>(a.y, at.row), false,
                   [&](std::int64_t i) { return last != nullptr ? x[i] - last[i] : x[i]; });
}

/// The last token; without any the state before it.
template <class T>
__global__ void forward_state(TimeDifferenceForward a) {
  const auto at = cuda::own_share(a.batch, a.width);
  const T* last = a.time > 0 ? row<T>(a.x, (at.row + 1) * a.time - 1) : cuda::optional_row<T>(a.state_in, at.row);
  cuda::write_each(at, row<T>(a.state_out, at.row), false,
                   [&](std::int64_t i) { return last != nullptr ? last[i] : T(0); });
}

/// dy of step t of row b if that step read the one before it.
template <class T>
__device__ const T* reading(const TimeDifferenceBackward& a, std::int64_t b, std::int64_t t) {
  if (t >= a.time || begins(a.starts, b, t)) return nullptr;
  return cuda::optional_row<T>(a.dy, b * a.time + t);
}

template <class T>
__global__ void backward_tokens(TimeDifferenceBackward a) {
  const auto at = cuda::own_share(a.batch * a.time, a.width);
  const auto [b, t] = cuda::place_of(at.row, a.time);
  const T* dy = cuda::optional_row<T>(a.dy, at.row);
  const T* next = reading<T>(a, b, t + 1);
  const T* state = t + 1 == a.time ? cuda::optional_row<T>(a.dstate_out, b) : nullptr;
  cuda::write_each(at, row<T>(a.dx, at.row), a.accumulate_dx, [&](std::int64_t i) {
    return (dy != nullptr ? dy[i] : T(0)) - (next != nullptr ? next[i] : T(0)) + (state != nullptr ? state[i] : T(0));
  });
}

/// Without any step the state passes through.
template <class T>
__global__ void backward_state(TimeDifferenceBackward a) {
  const auto at = cuda::own_share(a.batch, a.width);
  const T* state = a.time == 0 ? cuda::optional_row<T>(a.dstate_out, at.row) : nullptr;
  const T* next = reading<T>(a, at.row, 0);
  cuda::write_each(at, row<T>(a.dstate_in, at.row), a.accumulate_dstate_in, [&](std::int64_t i) {
    return (state != nullptr ? state[i] : T(0)) - (next != nullptr ? next[i] : T(0));
  });
}

template <class T>
void forward(const cuda::Queue& queue, const TimeDifferenceForward& a) {
  cuda::start_rows(queue, a.batch * a.time, a.width, forward_tokens<T>, a);
  if (a.state_out.data != nullptr) cuda::start_rows(queue, a.batch, a.width, forward_state<T>, a);
}

template <class T>
void backward(const cuda::Queue& queue, const TimeDifferenceBackward& a) {
  if (a.dx.data != nullptr) cuda::start_rows(queue, a.batch * a.time, a.width, backward_tokens<T>, a);
  if (a.dstate_in.data != nullptr) cuda::start_rows(queue, a.batch, a.width, backward_state<T>, a);
}

}  // namespace

void time_difference_cuda(cuda::Kernels& kernels) {
  kernels.add(time_difference_forward, forward<float>, forward<double>);
  kernels.add(time_difference_backward, backward<float>, backward<double>);
}

}  // namespace phasor::ops
