#include "core/cuda/gemm.h"
#include "core/cuda/kernels.h"
#include "core/ops/head_linear/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
void forward(const cuda::Queue& queue, const HeadLinearForward& a) {
  cuda::gemm_batch(queue, a.precision, false, false, a.rows, a.out, a.in, row<T>(a.x, 0), a.x.stride, a.in,
                   row<T>(a.weight, 0), a.weight.stride, a.in * a.weight.stride, false, row<T>(a.y, 0), a.y.stride,
                   a.out, a.heads);
}

template <class T>
void backward(const cuda::Queue& queue, const HeadLinearBackward& a) {
  const T* dy = row<T>(a.dy, 0);
  if (a.dx.data != nullptr)
    cuda::gemm_batch(queue, a.precision, false, true, a.rows, a.in, a.out, dy, a.dy.stride, a.out, row<T>(a.weight, 0),
                     a.weight.stride, a.in * a.weight.stride, a.accumulate, row<T>(a.dx, 0), a.dx.stride, a.in,
                     a.heads);
  if (a.dweight.data != nullptr)
    cuda::gemm_batch(queue, a.precision, true, false, a.in, a.out, a.rows, row<T>(a.x, 0), a.x.stride, a.in, dy,
                     a.dy.stride, a.out, true, row<T>(a.dweight, 0), a.dweight.stride, a.in * a.dweight.stride,
                     a.heads);
}

}  // namespace

void head_linear_cuda(cuda::Kernels& kernels) {
  kernels.add(head_linear_forward, forward<float>, forward<double>);
  kernels.add(head_linear_backward, backward<float>, backward<double>);
}

}  // namespace phasor::ops
