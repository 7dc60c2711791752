#include "core/cuda/gemm.h"
#include "core/cuda/kernels.h"
#include "core/cuda/reduce.h"
#include "core/ops/linear/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
T* data(const View& view) {
  return static_cast<T*>(view.data);
}

template <class T>
__global__ void write_bias(LinearForward a) {
  const auto [r, i] = cuda::place_of(cuda::thread_index(), a.out);
  if (r < a.rows) row<T>(a.y, r)[i] = static_cast<const T*>(a.bias.data)[i];
}

template <class T>
struct BiasTerm {
  View dy;
  __device__ T operator()(std::int64_t r, std::int64_t i) const { return row<T>(dy, r)[i]; }
};

template <class T>
void forward(const cuda::Queue& queue, const LinearForward& a) {
  const bool biased = a.bias.data != nullptr;
  if (biased) cuda::start_each(queue, a.rows * a.out, write_bias<T>, a);
  cuda::gemm(queue, a.precision, false, true, a.rows, a.out, a.in, data<T>(a.x), a.x.stride, data<T>(a.weight),
             a.weight.stride, biased, data<T>(a.y), a.y.stride);
}

template <class T>
void backward(const cuda::Queue& queue, const LinearBackward& a) {
  if (a.dx.data != nullptr)
    cuda::gemm(queue, a.precision, false, false, a.rows, a.in, a.out, data<T>(a.dy), a.dy.stride, data<T>(a.weight),
               a.weight.stride, a.accumulate, data<T>(a.dx), a.dx.stride);
  if (a.dweight.data != nullptr)
    cuda::gemm(queue, a.precision, true, false, a.out, a.in, a.rows, data<T>(a.dy), a.dy.stride, data<T>(a.x),
               a.x.stride, a.accumulate_weight, data<T>(a.dweight), a.dweight.stride);
  if (a.dbias.data != nullptr) cuda::start_column_sums(queue, BiasTerm<T>{a.dy}, data<T>(a.dbias), a.rows, a.out);
}

}  // namespace

void linear_cuda(cuda::Kernels& kernels) {
  kernels.add(linear_forward, forward<float>, forward<double>);
  kernels.add(linear_backward, backward<float>, backward<double>);
}

}  // namespace phasor::ops
