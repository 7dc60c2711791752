#include <cmath>

#include "core/ops/rms_norm/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
void forward(const RmsNormForward& a) {
  const T scale = T(1) / static_cast<T>(a.width);
  const T eps = static_cast<T>(a.eps);
  const T* weight = static_cast<const T*>(a.weight.data);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T* x = row<T>(a.x, r) + g * a.width;
      T* y = row<T>(a.y, r) + g * a.width;
      T sum(0);
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = 0; i < a.width; ++i) sum += x[i] * x[i];
      const T inverse = T(1) / std::sqrt(sum * scale + eps);
      row<T>(a.inverse, r)[g] = inverse;
      if (weight != nullptr) {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) y[i] = x[i] * inverse * weight[i];
      } else {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) y[i] = x[i] * inverse;
      }
    }
  }
}

template <class T>
void backward(const RmsNormBackward& a) {
  const T scale = T(1) / static_cast<T>(a.width);
  const T* weight = static_cast<const T*>(a.weight.data);
  T* dweight = static_cast<T*>(a.dweight.data);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T* x = row<T>(a.x, r) + g * a.width;
      const T* dy = row<T>(a.dy, r) + g * a.width;
      const T inverse = row<T>(a.inverse, r)[g];
      if (dweight != nullptr) {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) dweight[i] += dy[i] * x[i] * inverse;
      }
      if (a.dx.data == nullptr) continue;
      const auto wd = [&](std::int64_t i) { return weight != nullptr ? weight[i] * dy[i] : dy[i]; };
      T dot(0);
#pragma omp simd reduction(+ : dot)
      for (std::int64_t i = 0; i < a.width; ++i) dot += x[i] * wd(i);
      const T mean = dot * inverse * inverse * scale;
      T* dx = row<T>(a.dx, r) + g * a.width;
      if (a.accumulate) {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) dx[i] += inverse * (wd(i) - x[i] * mean);
      } else {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) dx[i] = inverse * (wd(i) - x[i] * mean);
      }
    }
  }
}

}  // namespace

const Kernel<RmsNormForward> rms_norm_forward{"rms_norm.forward", forward<float>, forward<double>};
const Kernel<RmsNormBackward> rms_norm_backward{"rms_norm.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
