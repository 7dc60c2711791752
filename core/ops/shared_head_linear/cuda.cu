#include "core/cuda/gemm.h"
#include "core/cuda/kernels.h"
#include "core/cuda/shares.h"
#include "core/ops/shared_head_linear/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
__global__ void write_bias(SharedHeadLinearForward a) {
  const auto at = cuda::own_share(a.rows * a.heads, a.out);
  const auto [r, h] = cuda::place_of(at.row, a.heads);
  const T* bias = row<T>(a.bias, 0);
  cuda::write_each(at, row<T>(a.y, r) + h * a.out, false, [&](std::int64_t i) { return bias[i]; });
}

template <class T>
struct BiasTerm {
  SharedHeadLinearBackward a;
  __device__ T operator()(std::int64_t vector, std::int64_t i) const {
    const auto [r, h] = cuda::place_of(vector, a.heads);
    return row<T>(a.dy, r)[h * a.out + i];
  }
};

/// The vectors of all heads as matrices whose rows are `x_stride` and `y_stride` apart: one when no row has a gap, else
/// one per head.
struct Vectors {
  std::int64_t count, rows, x_stride, y_stride;
};

template <class Args>
Vectors vectors_of(const Args& a, const View& x, const View& y) {
  if (x.stride == a.heads * a.in && y.stride == a.heads * a.out) return {1, a.rows * a.heads, a.in, a.out};
  return {a.heads, a.rows, x.stride, y.stride};
}

template <class T>
void forward(const cuda::Queue& queue, const SharedHeadLinearForward& a) {
  const bool biased = a.bias.data != nullptr;
  if (biased) cuda::start_rows(queue, a.rows * a.heads, a.out, write_bias<T>, a);
  const Vectors v = vectors_of(a, a.x, a.y);
  cuda::gemm_batch(queue, a.precision, false, true, v.rows, a.out, a.in, row<T>(a.x, 0), v.x_stride, a.in,
                   row<T>(a.weight, 0), a.weight.stride, 0, biased, row<T>(a.y, 0), v.y_stride, a.out, v.count);
}

template <class T>
void backward(const cuda::Queue& queue, const SharedHeadLinearBackward& a) {
  const T* dy = row<T>(a.dy, 0);
  if (a.dx.data != nullptr) {
    const Vectors v = vectors_of(a, a.dx, a.dy);
    cuda::gemm_batch(queue, a.precision, false, false, v.rows, a.in, a.out, dy, v.y_stride, a.out, row<T>(a.weight, 0),
                     a.weight.stride, 0, a.accumulate, row<T>(a.dx, 0), v.x_stride, a.in, v.count);
  }
  if (a.dweight.data != nullptr) {  // one after the other, since all add to the same
    const Vectors v = vectors_of(a, a.x, a.dy);
    for (std::int64_t h = 0; h < v.count; ++h)
      cuda::gemm(queue, a.precision, true, false, a.out, a.in, v.rows, dy + h * a.out, v.y_stride,
                 row<T>(a.x, 0) + h * a.in, v.x_stride, true, row<T>(a.dweight, 0), a.dweight.stride);
  }
  if (a.dbias.data != nullptr)
    cuda::start_column_sums(queue, BiasTerm<T>{a}, row<T>(a.dbias, 0), a.rows * a.heads, a.out);
}

}  // namespace

void shared_head_linear_cuda(cuda::Kernels& kernels) {
  kernels.add(shared_head_linear_forward, forward<float>, forward<double>);
  kernels.add(shared_head_linear_backward, backward<float>, backward<double>);
}

}  // namespace phasor::ops
