#include "core/ops/gemm.h"
#include "core/ops/linear/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
T* data(const View& view) {
  return static_cast<T*>(view.data);
}

template <class T>
void forward(const LinearForward& a) {
  const T* bias = data<T>(a.bias);
  if (bias != nullptr) {
    for (std::int64_t r = 0; r < a.rows; ++r) {
      T* y = row<T>(a.y, r);
#pragma omp simd
      for (std::int64_t i = 0; i < a.out; ++i) y[i] = bias[i];
    }
  }
  gemm(a.precision, false, true, a.rows, a.out, a.in, T(1), data<T>(a.x), a.x.stride, data<T>(a.weight),
       a.weight.stride, bias != nullptr ? T(1) : T(0), data<T>(a.y), a.y.stride);
}

// Four rows at a time: a quarter of the traffic on the sum, and a shorter chain of roundings.
template <class T>
void add_column_sums(const View& from, T* sum, std::int64_t rows, std::int64_t width) {
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const T* d0 = row<T>(from, r);
    const T* d1 = row<T>(from, r + 1);
    const T* d2 = row<T>(from, r + 2);
    const T* d3 = row<T>(from, r + 3);
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) sum[i] += (d0[i] + d1[i]) + (d2[i] + d3[i]);
  }
  for (; r < rows; ++r) {
    const T* d = row<T>(from, r);
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) sum[i] += d[i];
  }
}

template <class T>
void backward(const LinearBackward& a) {
  if (a.dx.data != nullptr)
    gemm(a.precision, false, false, a.rows, a.in, a.out, T(1), data<T>(a.dy), a.dy.stride, data<T>(a.weight),
         a.weight.stride, a.accumulate ? T(1) : T(0), data<T>(a.dx), a.dx.stride);
  if (a.dweight.data != nullptr)
    gemm(a.precision, true, false, a.out, a.in, a.rows, T(1), data<T>(a.dy), a.dy.stride, data<T>(a.x), a.x.stride,
         a.accumulate_weight ? T(1) : T(0), data<T>(a.dweight), a.dweight.stride);
  if (a.dbias.data != nullptr) add_column_sums(a.dy, data<T>(a.dbias), a.rows, a.out);
}

}  // namespace

const Kernel<LinearForward> linear_forward{"linear.forward", forward<float>, forward<double>};
const Kernel<LinearBackward> linear_backward{"linear.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
