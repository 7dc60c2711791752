#include "core/ops/gemm.h"
#include "core/ops/shared_head_linear/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
void set_rows(const View& to, const T* from, std::int64_t rows, std::int64_t heads, std::int64_t width) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t h = 0; h < heads; ++h) {
      T* y = row<T>(to, r) + h * width;
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) y[i] = from[i];
    }
}

template <class T>
void add_sums(const View& from, T* sum, std::int64_t rows, std::int64_t heads, std::int64_t width) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t h = 0; h < heads; ++h) {
      const T* dy = row<T>(from, r) + h * width;
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) sum[i] += dy[i];
    }
}

template <class T>
void forward(const SharedHeadLinearForward& a) {
  const bool biased = a.bias.data != nullptr;
  if (biased) set_rows(a.y, row<T>(a.bias, 0), a.rows, a.heads, a.out);
  for (std::int64_t h = 0; h < a.heads; ++h)
    gemm(a.precision, false, true, a.rows, a.out, a.in, T(1), row<T>(a.x, 0) + h * a.in, a.x.stride,
         row<T>(a.weight, 0), a.weight.stride, biased ? T(1) : T(0), row<T>(a.y, 0) + h * a.out, a.y.stride);
}

template <class T>
void backward(const SharedHeadLinearBackward& a) {
  for (std::int64_t h = 0; h < a.heads; ++h) {
    const T* dy = row<T>(a.dy, 0) + h * a.out;
    if (a.dx.data != nullptr)
      gemm(a.precision, false, false, a.rows, a.in, a.out, T(1), dy, a.dy.stride, row<T>(a.weight, 0), a.weight.stride,
           a.accumulate ? T(1) : T(0), row<T>(a.dx, 0) + h * a.in, a.dx.stride);
    if (a.dweight.data != nullptr)
      gemm(a.precision, true, false, a.out, a.in, a.rows, T(1), dy, a.dy.stride, row<T>(a.x, 0) + h * a.in, a.x.stride,
           T(1), row<T>(a.dweight, 0), a.dweight.stride);
  }
  if (a.dbias.data != nullptr) add_sums(a.dy, row<T>(a.dbias, 0), a.rows, a.heads, a.out);
}

}  // namespace

const Kernel<SharedHeadLinearForward> shared_head_linear_forward{"shared_head_linear.forward", forward<float>,
                                                                 forward<double>};
const Kernel<SharedHeadLinearBackward> shared_head_linear_backward{"shared_head_linear.backward", backward<float>,
                                                                   backward<double>};

}  // namespace phasor::ops
