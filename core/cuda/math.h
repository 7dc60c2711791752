#pragma once

#include <cmath>

#include "core/cuda/launch.h"

// Functions of single elements for device code, as core/ops/vector_math.h has them for the processor. Those of CUDA are
// good to one or two units of the last place; the fast ones (__expf) are not used.

namespace phasor::cuda {

template <class T>
__device__ T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

template <class T>
__device__ T silu(T x) {
  return x * sigmoid(x);
}

/// d silu / dx.
template <class T>
__device__ T silu_slope(T x) {
  return sigmoid(x) * (T(1) + x * sigmoid(-x));
}

template <class T>
__device__ T softplus(T x) {
  return (x > T(0) ? x : T(0)) + std::log1p(std::exp(-std::abs(x)));
}

template <class T>
__device__ T log_sigmoid(T x) {
  return (x < T(0) ? x : T(0)) - std::log1p(std::exp(-std::abs(x)));
}

/// The share of a standard normal distribution below x, (1 + erf(x / sqrt 2)) / 2.
template <class T>
__device__ T normal_share(T x) {
  return T(0.5) * std::erfc(x * T(-0.70710678118654752440));
}

/// Angle in [-pi, pi] that differs from `angle` by whole turns. In double, always: phases are sums over time.
__device__ inline double reduce_angle(double angle) {
  constexpr double two_pi_high = 6.2831853071795862, two_pi_low = 2.4492935982947064e-16;
  const double turns = std::rint(angle * 0.15915494309189535);
  return std::fma(turns, -two_pi_low, std::fma(turns, -two_pi_high, angle));
}

}  // namespace phasor::cuda
