#include "core/ops/sum_norm/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
void forward(const VectorNormForward& a) {
  const T eps = static_cast<T>(a.eps);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T* x = row<T>(a.x, r) + g * a.width;
      T* y = row<T>(a.y, r) + g * a.width;
      T sum(0);
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = 0; i < a.width; ++i) sum += x[i];
      const T inverse = T(1) / (sum + eps);
      row<T>(a.inverse, r)[g] = inverse;
#pragma omp simd
      for (std::int64_t i = 0; i < a.width; ++i) y[i] = x[i] * inverse;
    }
  }
}

template <class T>
void backward(const VectorNormBackward& a) {
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T* y = row<T>(a.y, r) + g * a.width;
      const T* dy = row<T>(a.dy, r) + g * a.width;
      T* dx = row<T>(a.dx, r) + g * a.width;
      const T inverse = row<T>(a.inverse, r)[g];
      T dot(0);
#pragma omp simd reduction(+ : dot)
      for (std::int64_t i = 0; i < a.width; ++i) dot += y[i] * dy[i];
      if (a.accumulate) {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) dx[i] += inverse * (dy[i] - dot);
      } else {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) dx[i] = inverse * (dy[i] - dot);
      }
    }
  }
}

}  // namespace

const Kernel<VectorNormForward> sum_norm_forward{"sum_norm.forward", forward<float>, forward<double>};
const Kernel<VectorNormBackward> sum_norm_backward{"sum_norm.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
