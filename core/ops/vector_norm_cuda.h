#pragma once

#include "core/cuda/shares.h"
#include "core/ops/vector_norm.h"

// The kernels of l2_norm and sum_norm. `Norm` says what is summed, the number r that follows from it, and -d(1/r)/dx:
// term(x), factor(sum), along(y).

namespace phasor::ops {

template <class T, class Norm>
__global__ void norm_vectors(VectorNormForward a) {
  const auto at = cuda::own_share(a.rows * a.groups, a.width);
  const auto [r, g] = cuda::place_of(at.row, a.groups);
  const T* x = row<T>(a.x, r) + g * a.width;
  const T sum = cuda::sum_of<T>(at, [&](std::int64_t i) { return Norm::term(x[i]); });
  const T factor = Norm::factor(sum + static_cast<T>(a.eps));
  if (at.there && threadIdx.x == 0) row<T>(a.inverse, r)[g] = factor;
  cuda::write_each(at, row<T>(a.y, r) + g * a.width, false, [&](std::int64_t i) { return x[i] * factor; });
}

template <class T, class Norm>
__global__ void norm_vectors_back(VectorNormBackward a) {
  const auto at = cuda::own_share(a.rows * a.groups, a.width);
  const auto [r, g] = cuda::place_of(at.row, a.groups);
  const T* y = row<T>(a.y, r) + g * a.width;
  const T* dy = row<T>(a.dy, r) + g * a.width;
  const T factor = row<T>(a.inverse, r)[g];
  const T dot = cuda::sum_of<T>(at, [&](std::int64_t i) { return y[i] * dy[i]; });
  cuda::write_each(at, row<T>(a.dx, r) + g * a.width, a.accumulate,
                   [&](std::int64_t i) { return factor * (dy[i] - Norm::along(y[i]) * dot); });
}

template <class T, class Norm>
void start_norm(const cuda::Queue& queue, const VectorNormForward& a) {
  cuda::start_vectors(queue, a.rows * a.groups, a.width, norm_vectors<T, Norm>, a);
}

template <class T, class Norm>
void start_norm_back(const cuda::Queue& queue, const VectorNormBackward& a) {
  cuda::start_vectors(queue, a.rows * a.groups, a.width, norm_vectors_back<T, Norm>, a);
}

}  // namespace phasor::ops
