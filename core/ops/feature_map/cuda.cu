#include <cmath>

#include "core/cuda/kernels.h"
#include "core/cuda/math.h"
#include "core/cuda/shares.h"
#include "core/ops/feature_map/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
__device__ T root_share(std::int64_t features) {
  return T(1) / std::sqrt(static_cast<T>(features));
}

// A team takes the vector x and the vector of its features, which need not be of one length.

template <class T>
__global__ void positive_vectors(PositiveFeaturesForward a) {
  const std::int64_t vectors = a.rows * a.heads;
  const auto at = cuda::own_share(vectors, a.width), in_features = cuda::own_share(vectors, a.features);
  const auto [r, h] = cuda::place_of(at.row, a.heads);
  const T* x = row<T>(a.x, r) + h * a.width;
  const T* z = row<T>(a.z, r) + h * a.features;
  const T half = T(0.5) * cuda::sum_of<T>(at, [&](std::int64_t i) { return x[i] * x[i]; });
  const T share = root_share<T>(a.features);
  cuda::write_each(in_features, row<T>(a.y, r) + h * a.features, false,
                   [&](std::int64_t j) { return share * std::exp(z[j] - half); });
}

template <class T>
__global__ void pull_positive_vectors(PositiveFeaturesBackward a) {
  const std::int64_t vectors = a.rows * a.heads;
  const auto at = cuda::own_share(vectors, a.width), in_features = cuda::own_share(vectors, a.features);
  const auto [r, h] = cuda::place_of(at.row, a.heads);
  const T* y = row<T>(a.y, r) + h * a.features;
  const T* dy = row<T>(a.dy, r) + h * a.features;
  const auto product = [&](std::int64_t j) { return dy[j] * y[j]; };
  if (a.dz.data != nullptr) cuda::write_each(in_features, row<T>(a.dz, r) + h * a.features, a.accumulate_z, product);
  if (a.dx.data == nullptr) return;
  const T dot = cuda::sum_of<T>(in_features, product);
  const T* x = row<T>(a.x, r) + h * a.width;
  cuda::write_each(at, row<T>(a.dx, r) + h * a.width, a.accumulate_x, [&](std::int64_t i) { return -x[i] * dot; });
}

__device__ inline void sine_and_cosine(float angle, float& sin, float& cos) { sincosf(angle, &sin, &cos); }
__device__ inline void sine_and_cosine(double angle, double& sin, double& cos) { sincos(angle, &sin, &cos); }

template <class T>
__global__ void fourier_vectors(FourierFeaturesForward a) {
  const auto at = cuda::own_share(a.rows * a.heads, a.features);
  const auto [r, h] = cuda::place_of(at.row, a.heads);
  const T* z = row<T>(a.z, r) + h * a.features;
  T* first = row<T>(a.y, r) + 2 * h * a.features;
  const cuda::PairTarget<T> to{first, false, first + a.features, false};
  const T share = root_share<T>(a.features);
  cuda::each(
      at,
      [&](std::int64_t j) {
        T sin, cos;
        sine_and_cosine(z[j], sin, cos);
        return cuda::Pair<T>{share * sin, share * cos};
      },
      to);
}

template <class T>
__global__ void pull_fourier_vectors(FourierFeaturesBackward a) {
  const auto at = cuda::own_share(a.rows * a.heads, a.features);
  const auto [r, h] = cuda::place_of(at.row, a.heads);
  const T* sin = row<T>(a.y, r) + 2 * h * a.features;
  const T* cos = sin + a.features;
  const T* dsin = row<T>(a.dy, r) + 2 * h * a.features;
  const T* dcos = dsin + a.features;
  cuda::write_each(at, row<T>(a.dz, r) + h * a.features, a.accumulate,
                   [&](std::int64_t j) { return dsin[j] * cos[j] - dcos[j] * sin[j]; });
}

/// Sine and cosine of a token's weight, whose angle is made in double, as every angle of a position.
template <class T>
__device__ void weight_of(const CosineFeatures& a, std::int64_t b, std::int64_t t, T& sin, T& cos) {
  const auto* starts = cuda::optional_row<const std::int32_t>(a.starts, b);
  const std::int64_t position = starts != nullptr ? t - starts[t] : a.offset + t;
  const double turn = 1.5707963267948966 * static_cast<double>(position) / static_cast<double>(a.max_length);
  sine_and_cosine(static_cast<T>(cuda::reduce_angle(turn)), sin, cos);
}

// A share is of a token, all heads; i counts the elements of x, whose head lies twice as far in y.

template <class T>
__global__ void cosine_tokens(CosineFeatures a) {
  const auto at = cuda::own_share(a.batch * a.time, a.heads * a.width);
  const auto [b, t] = cuda::place_of(at.row, a.time);
  const T* x = row<T>(a.x, at.row);
  T* y = row<T>(a.y, at.row);
  T sin, cos;
  weight_of(a, b, t, sin, cos);
  cuda::each(
      at, [&](std::int64_t i) { return x[i] < T(0) ? T(0) : x[i]; },
      [&](std::int64_t i, T kept) {
        const std::int64_t place = i + cuda::place_of(i, a.width).row * a.width;
        y[place] = kept * cos;
        y[place + a.width] = kept * sin;
      });
}

template <class T>
__global__ void pull_cosine_tokens(CosineFeatures a) {
  const auto at = cuda::own_share(a.batch * a.time, a.heads * a.width);
  const auto [b, t] = cuda::place_of(at.row, a.time);
  const T* x = row<T>(a.x, at.row);
  const T* dy = row<T>(a.dy, at.row);
  T sin, cos;
  weight_of(a, b, t, sin, cos);
  cuda::write_each(at, row<T>(a.dx, at.row), a.accumulate, [&](std::int64_t i) {
    const std::int64_t place = i + cuda::place_of(i, a.width).row * a.width;
    return x[i] > T(0) ? dy[place] * cos + dy[place + a.width] * sin : T(0);
  });
}

template <class T>
void positive(const cuda::Queue& queue, const PositiveFeaturesForward& a) {
  cuda::start_vectors(queue, a.rows * a.heads, a.features > a.width ? a.features : a.width, positive_vectors<T>, a);
}

template <class T>
void pull_positive(const cuda::Queue& queue, const PositiveFeaturesBackward& a) {
  cuda::start_vectors(queue, a.rows * a.heads, a.features > a.width ? a.features : a.width, pull_positive_vectors<T>,
                      a);
}

template <class T>
void fourier(const cuda::Queue& queue, const FourierFeaturesForward& a) {
  cuda::start_rows(queue, a.rows * a.heads, a.features, fourier_vectors<T>, a);
}

template <class T>
void pull_fourier(const cuda::Queue& queue, const FourierFeaturesBackward& a) {
  cuda::start_rows(queue, a.rows * a.heads, a.features, pull_fourier_vectors<T>, a);
}

template <class T>
void cosine(const cuda::Queue& queue, const CosineFeatures& a) {
  cuda::start_rows(queue, a.batch * a.time, a.heads * a.width, cosine_tokens<T>, a);
}

template <class T>
void pull_cosine(const cuda::Queue& queue, const CosineFeatures& a) {
  cuda::start_rows(queue, a.batch * a.time, a.heads * a.width, pull_cosine_tokens<T>, a);
}

}  // namespace

void feature_map_cuda(cuda::Kernels& kernels) {
  kernels.add(positive_features_forward, positive<float>, positive<double>);
  kernels.add(positive_features_backward, pull_positive<float>, pull_positive<double>);
  kernels.add(fourier_features_forward, fourier<float>, fourier<double>);
  kernels.add(fourier_features_backward, pull_fourier<float>, pull_fourier<double>);
  kernels.add(cosine_features_forward, cosine<float>, cosine<double>);
  kernels.add(cosine_features_backward, pull_cosine<float>, pull_cosine<double>);
}

}  // namespace phasor::ops
