#include <cmath>

#include "core/ops/fixed_width.h"
#include "core/ops/l2_norm/kernel.h"

namespace phasor::ops {

namespace {

template <class T, class Width>
void forward_as(const VectorNormForward& a, Width width) {
  const T eps = static_cast<T>(a.eps);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T* x = row<T>(a.x, r) + g * width;
      T* y = row<T>(a.y, r) + g * width;
      T sum(0);
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = 0; i < width; ++i) sum += x[i] * x[i];
      const T inverse = T(1) / std::sqrt(sum + eps);
      row<T>(a.inverse, r)[g] = inverse;
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) y[i] = x[i] * inverse;
    }
  }
}

template <class T, class Width>
void backward_as(const VectorNormBackward& a, Width width) {
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T* y = row<T>(a.y, r) + g * width;
      const T* dy = row<T>(a.dy, r) + g * width;
      T* dx = row<T>(a.dx, r) + g * width;
      const T inverse = row<T>(a.inverse, r)[g];
      T dot(0);
#pragma omp simd reduction(+ : dot)
      for (std::int64_t i = 0; i < width; ++i) dot += y[i] * dy[i];
      if (a.accumulate) {
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) dx[i] += inverse * (dy[i] - y[i] * dot);
      } else {
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) dx[i] = inverse * (dy[i] - y[i] * dot);
      }
    }
  }
}

template <class T>
void forward(const VectorNormForward& a) {
  with_fixed_width(a.width, [&](auto width) { forward_as<T>(a, width); });
}

template <class T>
void backward(const VectorNormBackward& a) {
  with_fixed_width(a.width, [&](auto width) { backward_as<T>(a, width); });
}

}  // namespace

const Kernel<VectorNormForward> l2_norm_forward{"l2_norm.forward", forward<float>, forward<double>};
const Kernel<VectorNormBackward> l2_norm_backward{"l2_norm.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
