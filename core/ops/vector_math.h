#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

// Elementary functions for kernels: branch-free, so that a loop marked `omp simd` becomes vector code, and the same on
// every processor, where libm picks another variant per processor. No flags such as -ffast-math are needed or used.
// Accuracy (tests/core): a few units in the last place over the range a kernel can meet.

namespace phasor::math {

namespace detail {

template <class T>
struct Bits;
template <>
struct Bits<float> {
  using Int = std::int32_t;
  static constexpr int mantissa = 23, bias = 127;
  static constexpr float round = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  static constexpr float exp_low = -87.33654f, exp_high = 88.72283f;
};
template <>
struct Bits<double> {
  using Int = std::int64_t;
  static constexpr int mantissa = 52, bias = 1023;
  static constexpr double round = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double exp_low = -708.39641853226408, exp_high = 709.782712893384;
};

template <class T>
inline T pick(bool condition, T yes, T no) {
  return condition ? yes : no;
}

}  // namespace detail

template <class T>
inline T absolute(T x) {
  return x < T(0) ? -x : x;
}

/// e^x. Below the smallest normal number the result is 0 (no subnormals), above the largest it is infinite; NaN stays.
template <class T>
inline T exp(T x) {
  using B = detail::Bits<T>;
  using Int = typename B::Int;
  const T clamped = x < B::exp_low ? B::exp_low : (x > B::exp_high ? B::exp_high : x);
  const T shifted = clamped * T(1.4426950408889634) + B::round;
  const T n = shifted - B::round;
  T p;
  if constexpr (std::is_same_v<T, float>) {
    T r = clamped - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
  } else {
    T r = clamped - n * 6.93147180369123816490e-01;
    r = r - n * 1.90821492927058770002e-10;
    p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r * r + r + 1.0;
  }
  // 2^n in two factors, since n may be one more than the largest exponent.
  const Int k = std::bit_cast<Int>(shifted) - std::bit_cast<Int>(B::round);
  const Int half = k >> 1;
  const T first = std::bit_cast<T>((half + B::bias) << B::mantissa);
  const T second = std::bit_cast<T>((k - half + B::bias) << B::mantissa);
  T y = p * first * second;
  y = x < B::exp_low ? T(0) : y;
  y = x > B::exp_high ? std::numeric_limits<T>::infinity() : y;
  return x == x ? y : x;
}

/// Natural logarithm of a positive normal number; log(0) = -infinity, NaN below 0.
template <class T>
inline T log(T x) {
  using B = detail::Bits<T>;
  using Int = typename B::Int;
  // x = 2^k * m with m in [sqrt(1/2), sqrt(2))
  const Int bits = std::bit_cast<Int>(x);
  const Int offset = std::bit_cast<Int>(T(0.70710678118654752));
  const Int k = (bits - offset) >> B::mantissa;
  const T m = std::bit_cast<T>(bits - (k << B::mantissa));
  // Integers to floating point through the same shift as in exp: |k| is small.
  const T n = std::bit_cast<T>(k + std::bit_cast<Int>(B::round)) - B::round;
  const T s = (m - T(1)) / (m + T(1));
  const T z = s * s;
  T p;
  if constexpr (std::is_same_v<T, float>) {
    p = 0.23f;
    p = p * z + 0.2857142857f;
    p = p * z + 0.4f;
    p = p * z + 0.6666666667f;
  } else {
    p = 2.0 / 23.0;
    p = p * z + 2.0 / 21.0;
    p = p * z + 2.0 / 19.0;
    p = p * z + 2.0 / 17.0;
    p = p * z + 2.0 / 15.0;
    p = p * z + 2.0 / 13.0;
    p = p * z + 2.0 / 11.0;
    p = p * z + 2.0 / 9.0;
    p = p * z + 2.0 / 7.0;
    p = p * z + 2.0 / 5.0;
    p = p * z + 2.0 / 3.0;
  }
  const T r = T(2) * s + s * z * p;
  T y = n * T(6.93147180369123816490e-01) + (r + n * T(1.90821492927058770002e-10));
  if constexpr (std::is_same_v<T, float>) y = n * 0.693359375f + (r + n * -2.12194440e-4f);
  y = x == T(0) ? -std::numeric_limits<T>::infinity() : y;
  y = x == std::numeric_limits<T>::infinity() ? x : y;
  return x >= T(0) ? y : std::numeric_limits<T>::quiet_NaN();
}

/// log(1 + x) for x in [0, 1], without loss for small x.
template <class T>
inline T log1p_unit(T x) {
  const T u = T(1) + x;
  const T correction = x - (u - T(1));
  return math::log(u) + correction / u;
}

template <class T>
inline T sigmoid(T x) {
  const T e = math::exp(-absolute(x));
  const T d = T(1) / (T(1) + e);
  return x >= T(0) ? d : e * d;
}

template <class T>
inline T silu(T x) {
  return x * sigmoid(x);
}

/// d silu / dx.
template <class T>
inline T silu_slope(T x) {
  const T s = sigmoid(x);
  return s * (T(1) + x * (T(1) - s));
}

template <class T>
inline T softplus(T x) {
  return (x > T(0) ? x : T(0)) + log1p_unit(math::exp(-absolute(x)));
}

template <class T>
inline T log_sigmoid(T x) {
  return (x < T(0) ? x : T(0)) - log1p_unit(math::exp(-absolute(x)));
}

/// Angle in [-pi, pi] that differs from `angle` by whole turns, for |angle| up to about 1e9. In double, always: phases
/// are sums over time and would drift in single precision.
inline double reduce_angle(double angle) {
  constexpr double two_pi_high = 6.283185307179586232, two_pi_low = 2.449293598294706e-16;
  const double turns = (angle * 0.15915494309189535 + detail::Bits<double>::round) - detail::Bits<double>::round;
  return (angle - turns * two_pi_high) - turns * two_pi_low;
}

template <class T>
struct SinCos {
  T sin, cos;
};

/// Sine and cosine of a reduced angle, |angle| <= 2 pi or so.
template <class T>
inline SinCos<T> sincos(T angle) {
  using B = detail::Bits<T>;
  using Int = typename B::Int;
  const T shifted = angle * T(0.63661977236758134) + B::round;
  const T quarter = shifted - B::round;
  const Int q = std::bit_cast<Int>(shifted) - std::bit_cast<Int>(B::round);
  T r, s, c;
  if constexpr (std::is_same_v<T, float>) {
    r = angle - quarter * 1.5703125f;
    r = r - quarter * 4.837512969970703125e-4f;
    r = r - quarter * 7.549789948768648e-8f;
    const T z = r * r;
    s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * r + r;
    c = ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z - 0.5f * z + 1.0f;
  } else {
    r = angle - quarter * 1.57079632673412561417e+00;
    r = r - quarter * 6.07710050650619224932e-11;
    const T z = r * r;
    s = 1.58969099521155010221e-10;
    s = s * z - 2.50507602534068634195e-08;
    s = s * z + 2.75573137070700676789e-06;
    s = s * z - 1.98412698298579493134e-04;
    s = s * z + 8.33333333332248946124e-03;
    s = s * z - 1.66666666666666324348e-01;
    s = s * z * r + r;
    c = -1.13596475577881948265e-11;
    c = c * z + 2.08757232129817482790e-09;
    c = c * z - 2.75573143513906633035e-07;
    c = c * z + 2.48015872894767294178e-05;
    c = c * z - 1.38888888888741095749e-03;
    c = c * z + 4.16666666666666019037e-02;
    c = c * z * z - 0.5 * z + 1.0;
  }
  const bool swap = (q & 1) != 0;
  const T sin_part = swap ? c : s;
  const T cos_part = swap ? s : c;
  return {(q & 2) != 0 ? -sin_part : sin_part, ((q + 1) & 2) != 0 ? -cos_part : cos_part};
}

}  // namespace phasor::math
