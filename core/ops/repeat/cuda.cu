#include "core/cuda/kernels.h"
#include "core/cuda/shares.h"
#include "core/ops/repeat/kernel.h"

namespace phasor::ops {

namespace {

/// A share is of one copy: the copies of all vectors lie one after the other.
template <class T>
__global__ void forward_copies(RepeatForward a) {
  const auto at = cuda::own_share(a.rows * a.groups * a.times, a.width);
  const auto [vector, copy] = cuda::place_of(at.row, a.times);
  const auto [r, g] = cuda::place_of(vector, a.groups);
  const T* x = row<T>(a.x, r) + g * a.width;
  T* y = row<T>(a.y, r) + (g * a.times + copy) * a.width;
  cuda::write_each(at, y, false, [&](std::int64_t i) { return x[i]; });
}

template <class T>
__global__ void backward_vectors(RepeatBackward a) {
  const auto at = cuda::own_share(a.rows * a.groups, a.width);
  const auto [r, g] = cuda::place_of(at.row, a.groups);
  const T* dy = row<T>(a.dy, r) + g * a.times * a.width;
  const std::int64_t times = a.times, width = a.width;
  cuda::write_each(at, row<T>(a.dx, r) + g * a.width, a.accumulate, [&](std::int64_t i) {
    T sum(0);
    for (std::int64_t n = 0; n < times; ++n) sum += dy[n * width + i];
    return sum;
  });
}

template <class T>
void forward(const cuda::Queue& queue, const RepeatForward& a) {
  cuda::start_rows(queue, a.rows * a.groups * a.times, a.width, forward_copies<T>, a);
}

template <class T>
void backward(const cuda::Queue& queue, const RepeatBackward& a) {
  cuda::start_rows(queue, a.rows * a.groups, a.width, backward_vectors<T>, a);
}

}  // namespace

void repeat_cuda(cuda::Kernels& kernels) {
  kernels.add(repeat_forward, forward<float>, forward<double>);
  kernels.add(repeat_backward, backward<float>, backward<double>);
}

}  // namespace phasor::ops
