#include <cmath>

#include "core/ops/layer_norm/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
void forward(const LayerNormForward& a) {
  const T scale = T(1) / static_cast<T>(a.width);
  const T eps = static_cast<T>(a.eps);
  const T* weight = static_cast<const T*>(a.weight.data);
  const T* bias = static_cast<const T*>(a.bias.data);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T* x = row<T>(a.x, r) + g * a.width;
      T* y = row<T>(a.y, r) + g * a.width;
      T sum(0);
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = 0; i < a.width; ++i) sum += x[i];
      const T mean = sum * scale;
      // The deviations first, then their squares: a mean far above the spread costs no digits.
      T square(0);
#pragma omp simd reduction(+ : square)
      for (std::int64_t i = 0; i < a.width; ++i) square += (x[i] - mean) * (x[i] - mean);
      const T inverse = T(1) / std::sqrt(square * scale + eps);
      T* stats = row<T>(a.stats, r) + 2 * g;
      stats[0] = mean;
      stats[1] = inverse;
#pragma omp simd
      for (std::int64_t i = 0; i < a.width; ++i) y[i] = (x[i] - mean) * inverse;
      if (weight != nullptr) {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) y[i] *= weight[i];
      }
      if (bias != nullptr) {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) y[i] += bias[i];
      }
    }
  }
}

template <class T>
void backward(const LayerNormBackward& a) {
  const T scale = T(1) / static_cast<T>(a.width);
  const T* weight = static_cast<const T*>(a.weight.data);
  T* dweight = static_cast<T*>(a.dweight.data);
  T* dbias = static_cast<T*>(a.dbias.data);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T* x = row<T>(a.x, r) + g * a.width;
      const T* dy = row<T>(a.dy, r) + g * a.width;
      const T mean = row<T>(a.stats, r)[2 * g], inverse = row<T>(a.stats, r)[2 * g + 1];
      if (dweight != nullptr) {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) dweight[i] += dy[i] * (x[i] - mean) * inverse;
      }
      if (dbias != nullptr) {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) dbias[i] += dy[i];
      }
      if (a.dx.data == nullptr) continue;
      const auto wd = [&](std::int64_t i) { return weight != nullptr ? weight[i] * dy[i] : dy[i]; };
      T sum(0), dot(0);
#pragma omp simd reduction(+ : sum, dot)
      for (std::int64_t i = 0; i < a.width; ++i) {
        sum += wd(i);
        dot += (x[i] - mean) * wd(i);
      }
      const T shift = sum * scale, slope = dot * inverse * inverse * scale;
      T* dx = row<T>(a.dx, r) + g * a.width;
      if (a.accumulate) {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) dx[i] += inverse * (wd(i) - shift - (x[i] - mean) * slope);
      } else {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) dx[i] = inverse * (wd(i) - shift - (x[i] - mean) * slope);
      }
    }
  }
}

}  // namespace

const Kernel<LayerNormForward> layer_norm_forward{"layer_norm.forward", forward<float>, forward<double>};
const Kernel<LayerNormBackward> layer_norm_backward{"layer_norm.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
