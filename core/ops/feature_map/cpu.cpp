#include <cmath>
#include <cstdint>

#include "core/ops/feature_map/kernel.h"
#include "core/ops/vector_math.h"

namespace phasor::ops {

namespace {

template <class T>
T root_share(std::int64_t features) {
  return T(1) / std::sqrt(static_cast<T>(features));
}

template <class T>
void positive(const PositiveFeaturesForward& a) {
  const T share = root_share<T>(a.features);
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t h = 0; h < a.heads; ++h) {
      const T* x = row<T>(a.x, r) + h * a.width;
      const T* z = row<T>(a.z, r) + h * a.features;
      T* y = row<T>(a.y, r) + h * a.features;
      T square(0);
#pragma omp simd reduction(+ : square)
      for (std::int64_t i = 0; i < a.width; ++i) square += x[i] * x[i];
      const T half = T(0.5) * square;
#pragma omp simd
      for (std::int64_t j = 0; j < a.features; ++j) y[j] = share * math::exp(z[j] - half);
    }
}

template <class T>
void pull_positive(const PositiveFeaturesBackward& a) {
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t h = 0; h < a.heads; ++h) {
      const T* x = row<T>(a.x, r) + h * a.width;
      const T* y = row<T>(a.y, r) + h * a.features;
      const T* dy = row<T>(a.dy, r) + h * a.features;
      if (a.dz.data != nullptr) {
        T* dz = row<T>(a.dz, r) + h * a.features;
        if (a.accumulate_z) {
#pragma omp simd
          for (std::int64_t j = 0; j < a.features; ++j) dz[j] += dy[j] * y[j];
        } else {
#pragma omp simd
          for (std::int64_t j = 0; j < a.features; ++j) dz[j] = dy[j] * y[j];
        }
      }
      if (a.dx.data == nullptr) continue;
      T dot(0);
#pragma omp simd reduction(+ : dot)
      for (std::int64_t j = 0; j < a.features; ++j) dot += dy[j] * y[j];
      T* dx = row<T>(a.dx, r) + h * a.width;
      if (a.accumulate_x) {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) dx[i] -= x[i] * dot;
      } else {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) dx[i] = -x[i] * dot;
      }
    }
}

template <class T>
void fourier(const FourierFeaturesForward& a) {
  const T share = root_share<T>(a.features);
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t h = 0; h < a.heads; ++h) {
      const T* z = row<T>(a.z, r) + h * a.features;
      T* sin = row<T>(a.y, r) + 2 * h * a.features;
      T* cos = sin + a.features;
#pragma omp simd
      for (std::int64_t j = 0; j < a.features; ++j) {
        const math::SinCos<T> at = math::sincos(z[j]);
        sin[j] = share * at.sin;
        cos[j] = share * at.cos;
      }
    }
}

template <class T>
void pull_fourier(const FourierFeaturesBackward& a) {
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t h = 0; h < a.heads; ++h) {
      const T* sin = row<T>(a.y, r) + 2 * h * a.features;
      const T* cos = sin + a.features;
      const T* dsin = row<T>(a.dy, r) + 2 * h * a.features;
      const T* dcos = dsin + a.features;
      T* dz = row<T>(a.dz, r) + h * a.features;
      if (a.accumulate) {
#pragma omp simd
        for (std::int64_t j = 0; j < a.features; ++j) dz[j] += dsin[j] * cos[j] - dcos[j] * sin[j];
      } else {
#pragma omp simd
        for (std::int64_t j = 0; j < a.features; ++j) dz[j] = dsin[j] * cos[j] - dcos[j] * sin[j];
      }
    }
}

/// Sine and cosine of a token's weight; in double, as every angle of a position.
math::SinCos<double> weight_of(const CosineFeatures& a, std::int64_t b, std::int64_t t) {
  std::int64_t position = a.offset + t;
  if (a.starts.data != nullptr) position = t - row<std::int32_t>(a.starts, b)[t];
  const double turn = 1.5707963267948966 * static_cast<double>(position) / static_cast<double>(a.max_length);
  return math::sincos(turn);
}

template <class T>
void cosine(const CosineFeatures& a) {
  for (std::int64_t b = 0; b < a.batch; ++b)
    for (std::int64_t t = 0; t < a.time; ++t) {
      const math::SinCos<double> at = weight_of(a, b, t);
      const T sin = static_cast<T>(at.sin), cos = static_cast<T>(at.cos);
      for (std::int64_t h = 0; h < a.heads; ++h) {
        const T* x = row<T>(a.x, b * a.time + t) + h * a.width;
        T* first = row<T>(a.y, b * a.time + t) + 2 * h * a.width;
        T* second = first + a.width;
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) {
          const T kept = x[i] < T(0) ? T(0) : x[i];
          first[i] = kept * cos;
          second[i] = kept * sin;
        }
      }
    }
}

template <class T>
void pull_cosine(const CosineFeatures& a) {
  for (std::int64_t b = 0; b < a.batch; ++b)
    for (std::int64_t t = 0; t < a.time; ++t) {
      const math::SinCos<double> at = weight_of(a, b, t);
      const T sin = static_cast<T>(at.sin), cos = static_cast<T>(at.cos);
      for (std::int64_t h = 0; h < a.heads; ++h) {
        const T* x = row<T>(a.x, b * a.time + t) + h * a.width;
        const T* first = row<T>(a.dy, b * a.time + t) + 2 * h * a.width;
        const T* second = first + a.width;
        T* dx = row<T>(a.dx, b * a.time + t) + h * a.width;
        if (a.accumulate) {
#pragma omp simd
          for (std::int64_t i = 0; i < a.width; ++i)
            dx[i] += math::choose(x[i] > T(0), first[i] * cos + second[i] * sin, T(0));
        } else {
#pragma omp simd
          for (std::int64_t i = 0; i < a.width; ++i)
            dx[i] = math::choose(x[i] > T(0), first[i] * cos + second[i] * sin, T(0));
        }
      }
    }
}

}  // namespace

const Kernel<PositiveFeaturesForward> positive_features_forward{"positive_features.forward", positive<float>,
                                                                positive<double>};
const Kernel<PositiveFeaturesBackward> positive_features_backward{"positive_features.backward", pull_positive<float>,
                                                                  pull_positive<double>};
const Kernel<FourierFeaturesForward> fourier_features_forward{"fourier_features.forward", fourier<float>,
                                                              fourier<double>};
const Kernel<FourierFeaturesBackward> fourier_features_backward{"fourier_features.backward", pull_fourier<float>,
                                                                pull_fourier<double>};
const Kernel<CosineFeatures> cosine_features_forward{"cosine_features.forward", cosine<float>, cosine<double>};
const Kernel<CosineFeatures> cosine_features_backward{"cosine_features.backward", pull_cosine<float>,
                                                      pull_cosine<double>};

}  // namespace phasor::ops
