#include "core/ops/gemm.h"
#include "core/ops/head_linear/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
void forward(const HeadLinearForward& a) {
  for (std::int64_t h = 0; h < a.heads; ++h)
    gemm(a.precision, false, false, a.rows, a.out, a.in, T(1), row<T>(a.x, 0) + h * a.in, a.x.stride,
         row<T>(a.weight, h * a.in), a.weight.stride, T(0), row<T>(a.y, 0) + h * a.out, a.y.stride);
}

template <class T>
void backward(const HeadLinearBackward& a) {
  for (std::int64_t h = 0; h < a.heads; ++h) {
    const T* dy = row<T>(a.dy, 0) + h * a.out;
    if (a.dx.data != nullptr)
      gemm(a.precision, false, true, a.rows, a.in, a.out, T(1), dy, a.dy.stride, row<T>(a.weight, h * a.in),
           a.weight.stride, a.accumulate ? T(1) : T(0), row<T>(a.dx, 0) + h * a.in, a.dx.stride);
    if (a.dweight.data != nullptr)
      gemm(a.precision, true, false, a.in, a.out, a.rows, T(1), row<T>(a.x, 0) + h * a.in, a.x.stride, dy, a.dy.stride,
           T(1), row<T>(a.dweight, h * a.in), a.dweight.stride);
  }
}

}  // namespace

const Kernel<HeadLinearForward> head_linear_forward{"head_linear.forward", forward<float>, forward<double>};
const Kernel<HeadLinearBackward> head_linear_backward{"head_linear.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
