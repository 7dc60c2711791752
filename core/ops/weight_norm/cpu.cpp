#include <algorithm>
#include <cmath>

#include "core/ops/vector_math.h"
#include "core/ops/weight_norm/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
constexpr T smallest = T(1e-12);

/// The norm that is divided by.
template <class T>
inline T divisor(T norm) {
  return math::choose(norm < smallest<T>, smallest<T>, norm);
}

template <class T>
void rows_forward(const WeightNormForward& a) {
  const T scale = static_cast<const T*>(a.scale.data)[0];
  for (std::int64_t r = 0; r < a.length; ++r) {
    const T* w = row<T>(a.w, r);
    T sum(0);
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < a.width; ++i) sum += w[i] * w[i];
    const T norm = std::sqrt(sum);
    row<T>(a.norm, r)[0] = norm;
    const T factor = scale / divisor(norm);
    T* y = row<T>(a.y, r);
#pragma omp simd
    for (std::int64_t i = 0; i < a.width; ++i) y[i] = factor * w[i];
  }
}

template <class T>
void rows_backward(const WeightNormBackward& a) {
  const T scale = static_cast<const T*>(a.scale.data)[0];
  T total(0);
  for (std::int64_t r = 0; r < a.length; ++r) {
    const T* w = row<T>(a.w, r);
    const T* dy = row<T>(a.dy, r);
    const T norm = row<T>(a.norm, r)[0];
    const T inverse = T(1) / divisor(norm);
    T sum(0);
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < a.width; ++i) sum += w[i] * dy[i];
    const T dot = sum * inverse;  // u . dy
    total += dot;
    if (a.dw.data == nullptr) continue;
    const T factor = scale * inverse;
    const T along = norm < smallest<T> ? T(0) : factor * dot * inverse;
    T* dw = row<T>(a.dw, r);
    if (a.accumulate) {
#pragma omp simd
      for (std::int64_t i = 0; i < a.width; ++i) dw[i] += factor * dy[i] - along * w[i];
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < a.width; ++i) dw[i] = factor * dy[i] - along * w[i];
    }
  }
  if (a.dscale.data != nullptr) static_cast<T*>(a.dscale.data)[0] += total;
}

template <class T>
void columns_forward(const WeightNormForward& a) {
  for (std::int64_t g = 0; g < a.groups; ++g) {
    const T scale = static_cast<const T*>(a.scale.data)[g];
    T* norm = row<T>(a.norm, g);
    std::fill_n(norm, a.width, T(0));
    for (std::int64_t r = 0; r < a.length; ++r) {
      const T* w = row<T>(a.w, g * a.length + r);
#pragma omp simd
      for (std::int64_t i = 0; i < a.width; ++i) norm[i] += w[i] * w[i];
    }
#pragma omp simd
    for (std::int64_t i = 0; i < a.width; ++i) norm[i] = std::sqrt(norm[i]);
    for (std::int64_t r = 0; r < a.length; ++r) {
      const T* w = row<T>(a.w, g * a.length + r);
      T* y = row<T>(a.y, g * a.length + r);
#pragma omp simd
      for (std::int64_t i = 0; i < a.width; ++i) y[i] = scale * w[i] / divisor(norm[i]);
    }
  }
}

template <class T>
void columns_backward(const WeightNormBackward& a) {
  T* dots = row<T>(a.dots, 0);
  for (std::int64_t g = 0; g < a.groups; ++g) {
    const T scale = static_cast<const T*>(a.scale.data)[g];
    const T* norm = row<T>(a.norm, g);
    std::fill_n(dots, a.width, T(0));
    for (std::int64_t r = 0; r < a.length; ++r) {
      const T* w = row<T>(a.w, g * a.length + r);
      const T* dy = row<T>(a.dy, g * a.length + r);
#pragma omp simd
      for (std::int64_t i = 0; i < a.width; ++i) dots[i] += w[i] * dy[i];
    }
    T total(0);
#pragma omp simd reduction(+ : total)
    for (std::int64_t i = 0; i < a.width; ++i) {
      const T inverse = T(1) / divisor(norm[i]);
      dots[i] *= inverse;  // u . dy
      total += dots[i];
    }
    if (a.dscale.data != nullptr) static_cast<T*>(a.dscale.data)[g] += total;
    if (a.dw.data == nullptr) continue;
      // What is taken off along w: (u . dy) / m, nothing where the norm is held at its smallest.
#pragma omp simd
    for (std::int64_t i = 0; i < a.width; ++i) {
      const T inverse = T(1) / divisor(norm[i]);
      dots[i] *= math::choose(norm[i] < smallest<T>, T(0), inverse);
    }
    for (std::int64_t r = 0; r < a.length; ++r) {
      const T* w = row<T>(a.w, g * a.length + r);
      const T* dy = row<T>(a.dy, g * a.length + r);
      T* dw = row<T>(a.dw, g * a.length + r);
      const auto value = [&](std::int64_t i) { return scale * (dy[i] - w[i] * dots[i]) / divisor(norm[i]); };
      if (a.accumulate) {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) dw[i] += value(i);
      } else {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) dw[i] = value(i);
      }
    }
  }
}

}  // namespace

const Kernel<WeightNormForward> weight_norm_rows_forward{"weight_norm.rows.forward", rows_forward<float>,
                                                         rows_forward<double>};
const Kernel<WeightNormBackward> weight_norm_rows_backward{"weight_norm.rows.backward", rows_backward<float>,
                                                           rows_backward<double>};
const Kernel<WeightNormForward> weight_norm_columns_forward{"weight_norm.columns.forward", columns_forward<float>,
                                                            columns_forward<double>};
const Kernel<WeightNormBackward> weight_norm_columns_backward{"weight_norm.columns.backward", columns_backward<float>,
                                                              columns_backward<double>};

}  // namespace phasor::ops
