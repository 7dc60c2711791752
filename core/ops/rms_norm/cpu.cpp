#include <cmath>

#include "core/ops/fixed_width.h"
#include "core/ops/rms_norm/kernel.h"

namespace phasor::ops {

namespace {

template <class T, class Width>
void forward_as(const RmsNormForward& a, Width width) {
  const T scale = T(1) / static_cast<T>(a.width);
  const T eps = static_cast<T>(a.eps);
  const T* weights = static_cast<const T*>(a.weight.data);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T* x = row<T>(a.x, r) + g * width;
      T* y = row<T>(a.y, r) + g * width;
      const T* weight = weights != nullptr ? weights + g * a.weight_step : nullptr;
      T sum(0);
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = 0; i < width; ++i) sum += x[i] * x[i];
      const T inverse = T(1) / std::sqrt(sum * scale + eps);
      row<T>(a.inverse, r)[g] = inverse;
      if (weight != nullptr) {
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) y[i] = x[i] * inverse * weight[i];
      } else {
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) y[i] = x[i] * inverse;
      }
    }
  }
}

template <class T, class Width>
void backward_as(const RmsNormBackward& a, Width width) {
  const T scale = T(1) / static_cast<T>(a.width);
  const T* weights = static_cast<const T*>(a.weight.data);
  T* dweights = static_cast<T*>(a.dweight.data);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T* x = row<T>(a.x, r) + g * width;
      const T* dy = row<T>(a.dy, r) + g * width;
      const T inverse = row<T>(a.inverse, r)[g];
      const T* weight = weights != nullptr ? weights + g * a.weight_step : nullptr;
      T* dweight = dweights != nullptr ? dweights + g * a.weight_step : nullptr;
      if (dweight != nullptr) {
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) dweight[i] += dy[i] * x[i] * inverse;
      }
      if (a.dx.data == nullptr) continue;
      const auto wd = [&](std::int64_t i) { return weight != nullptr ? weight[i] * dy[i] : dy[i]; };
      T dot(0);
#pragma omp simd reduction(+ : dot)
      for (std::int64_t i = 0; i < width; ++i) dot += x[i] * wd(i);
      const T mean = dot * inverse * inverse * scale;
      T* dx = row<T>(a.dx, r) + g * width;
      if (a.accumulate) {
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) dx[i] += inverse * (wd(i) - x[i] * mean);
      } else {
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) dx[i] = inverse * (wd(i) - x[i] * mean);
      }
    }
  }
}

template <class T>
void forward(const RmsNormForward& a) {
  with_fixed_width(a.width, [&](auto width) { forward_as<T>(a, width); });
}

template <class T>
void backward(const RmsNormBackward& a) {
  with_fixed_width(a.width, [&](auto width) { backward_as<T>(a, width); });
}

}  // namespace

const Kernel<RmsNormForward> rms_norm_forward{"rms_norm.forward", forward<float>, forward<double>};
const Kernel<RmsNormBackward> rms_norm_backward{"rms_norm.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
