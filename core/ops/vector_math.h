#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

// Elementary functions for kernels: branch-free, so that a loop marked `omp simd` becomes vector code, and the same on
// every processor, where libm picks another variant per processor. No flags such as -ffast-math are needed or used.
// Accuracy (tests/core/vector_math_test.cpp): a few units in the last place over the range a kernel can meet.
//
// Two habits keep the loops vector code under strict floating-point rules. Special values enter through bit patterns
// chosen as integers: the compiler would move floating-point arithmetic into the arm of a choice that needs it, and a
// branch is then left in the loop. Signed 64-bit numbers are never shifted right, which AVX2 cannot do. std::fma is one
// instruction here (x86-64-v3); it makes the reduction of arguments exact. Everything is always inline: left to itself, the
// compiler calls a function that has many callers in one large kernel, and a loop with a call is no vector code.

namespace phasor::math {

namespace detail {

template <class T>
struct Bits;
template <>
struct Bits<float> {
  using Int = std::int32_t;
  using Unsigned = std::uint32_t;
  static constexpr int mantissa = 23;
  static constexpr Unsigned bias = 127;
  static constexpr float round = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  static constexpr float exp_low = -87.33654f, exp_high = 88.72283f;
  static constexpr float exp_zero = -88.0f, exp_infinite = 88.5f;  // see power_of_two
  static constexpr float ln2_high = 0.69314718246459960938f, ln2_low = -1.9046542121259336e-09f;
  static constexpr float normal = 1.17549435e-38f;  // the smallest
  static constexpr float lift = 8388608.0f;         // 2^23: makes a subnormal number normal
};
template <>
struct Bits<double> {
  using Int = std::int64_t;
  using Unsigned = std::uint64_t;
  static constexpr int mantissa = 52;
  static constexpr Unsigned bias = 1023;
  static constexpr double round = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double exp_low = -708.39641853226408, exp_high = 709.782712893384;
  static constexpr double exp_zero = -709.0, exp_infinite = 709.5;
  static constexpr double ln2_high = 0.69314718055994528623, ln2_low = 2.3190468138462996e-17;
  static constexpr double normal = 2.2250738585072014e-308;
  static constexpr double lift = 4503599627370496.0;  // 2^52
};

template <class T>
using Unsigned = typename Bits<T>::Unsigned;

template <class T>
constexpr Unsigned<T> bits(T x) {
  return std::bit_cast<Unsigned<T>>(x);
}

/// All ones or all zeros.
template <class T>
[[gnu::always_inline]] inline Unsigned<T> mask(bool condition) {
  return Unsigned<T>(0) - Unsigned<T>(condition);
}

/// e^r for |r| <= ln(2) / 2.
template <class T>
[[gnu::always_inline]] inline T exp_tail(T r) {
  T p;
  if constexpr (std::is_same_v<T, float>) {
    p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
  } else {
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
  }
  return (p * (r * r) + r) + T(1);
}

/// x = n ln 2 + r with |r| <= ln(2) / 2; `shifted` is n + B::round.
template <class T>
[[gnu::always_inline]] inline T exp_remainder(T x, T shifted) {
  using B = Bits<T>;
  const T n = shifted - B::round;
  return std::fma(n, -B::ln2_low, std::fma(n, -B::ln2_high, x));
}

/// 2^n from n + B::round. One below the exponents of normal numbers it is 0, one above them infinite: what e^x becomes
/// at exp_zero and exp_infinite.
template <class T>
[[gnu::always_inline]] inline T power_of_two(T shifted) {
  using B = Bits<T>;
  return std::bit_cast<T>((bits(shifted) << B::mantissa) + (B::bias << B::mantissa));
}

}  // namespace detail

/// condition ? yes : no where both have been computed: for values that `?:` would make the compiler branch for.
template <class T>
[[gnu::always_inline]] inline T choose(bool condition, T yes, T no) {
  const auto mask = detail::mask<T>(condition);
  return std::bit_cast<T>((detail::bits(yes) & mask) | (detail::bits(no) & ~mask));
}

template <class T>
[[gnu::always_inline]] inline T absolute(T x) {
  return std::bit_cast<T>(detail::bits(x) & (~detail::Unsigned<T>(0) >> 1));
}

/// x within [low, high]; NaN stays. (Two ?: in a row would become seven instructions instead of four.)
template <class T>
[[gnu::always_inline]] inline T clamp(T x, T low, T high) {
  const T floored = choose(x < low, low, x);
  return choose(floored > high, high, floored);
}

/// e^x. Below the smallest normal number the result is 0 (no subnormals), above the largest it is infinite; NaN stays.
template <class T>
[[gnu::always_inline]] inline T exp(T x) {
  using B = detail::Bits<T>;
  using U = typename B::Unsigned;
  const T clamped = clamp(x, B::exp_low, B::exp_high);
  const T shifted = std::fma(clamped, T(1.4426950408889634), B::round);
  const T p = detail::exp_tail(detail::exp_remainder(clamped, shifted));
  // 2^n in two factors, since n may be one more than the largest exponent.
  const U k = detail::bits(shifted) - detail::bits(B::round) + 2 * B::bias;
  const U half = k >> 1;
  const T first = std::bit_cast<T>(half << B::mantissa), second = std::bit_cast<T>((k - half) << B::mantissa);
  const T last = choose(x < B::exp_low, T(0), second);
  return p * first * choose(x > B::exp_high, std::numeric_limits<T>::infinity(), last);
}

/// e^x for x <= 0, cheaper than exp: one factor, and no choice but the clamp. Below the smallest normal number the result
/// is rounded coarsely, or 0; NaN stays.
template <class T>
[[gnu::always_inline]] inline T exp_nonpositive(T x) {
  using B = detail::Bits<T>;
  const T clamped = x < B::exp_zero ? B::exp_zero : x;
  const T shifted = std::fma(clamped, T(1.4426950408889634), B::round);
  return detail::exp_tail(detail::exp_remainder(clamped, shifted)) * detail::power_of_two(shifted);
}

namespace detail {

/// log(1 + f) + n ln 2 for 1 + f in [sqrt(1/2), sqrt(2)):
/// log(1 + f) = f - (f^2/2 - s (f^2/2 + z p(z))) with s = f / (2 + f), z = s^2.
template <class T>
[[gnu::always_inline]] inline T log_tail(T f, T n) {
  using B = Bits<T>;
  const T s = f / (T(2) + f);
  const T z = s * s;
  T p;
  if constexpr (std::is_same_v<T, float>) {
    p = 0.24279078841f;
    p = p * z + 0.28498786688f;
    p = p * z + 0.40000972152f;
    p = p * z + 0.66666662693f;
  } else {
    p = 1.479819860511658591e-01;
    p = p * z + 1.531383769920937332e-01;
    p = p * z + 1.818357216161805012e-01;
    p = p * z + 2.222219843214978396e-01;
    p = p * z + 2.857142874366239149e-01;
    p = p * z + 3.999999999940941908e-01;
    p = p * z + 6.666666666666735130e-01;
  }
  const T square = T(0.5) * f * f;
  const T r = f - (square - std::fma(s, square + z * p, n * B::ln2_low));
  return std::fma(n, B::ln2_high, r);
}

}  // namespace detail

/// Natural logarithm; log(0) = -infinity, NaN below 0.
template <class T>
[[gnu::always_inline]] inline T log(T x) {
  using B = detail::Bits<T>;
  using U = typename B::Unsigned;
  const bool subnormal = x < B::normal;
  const U bits = detail::bits(x * choose(subnormal, B::lift, T(1)));
  // x = 2^k * m with m in [sqrt(1/2), sqrt(2)); k + bias is positive
  constexpr U offset = detail::bits(T(0.70710678118654752)) - (B::bias << B::mantissa);
  const U biased = (bits - offset) >> B::mantissa;
  const T m = std::bit_cast<T>(bits - (biased << B::mantissa) + (B::bias << B::mantissa));
  const U start = B::bias + (U(B::mantissa) & detail::mask<T>(subnormal));
  const T n = std::bit_cast<T>(biased - start + detail::bits(B::round)) - B::round;
  // Infinity and NaN are added at the end.
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const U special = (detail::mask<T>(x == T(0)) & detail::bits(-infinity)) |
                    (detail::mask<T>(x == infinity) & detail::bits(infinity)) |
                    (detail::mask<T>(!(x >= T(0))) & detail::bits(std::numeric_limits<T>::quiet_NaN()));
  return detail::log_tail(m - T(1), n) + std::bit_cast<T>(special);
}

/// log(1 + x) for x in [0, 1], without loss for small x: 1 + x is halved above sqrt(2), and never rounded.
template <class T>
[[gnu::always_inline]] inline T log1p_unit(T x) {
  const bool halve = x > T(0.41421356237309505);
  return detail::log_tail(choose(halve, T(0.5) * x - T(0.5), x), choose(halve, T(1), T(0)));
}

namespace detail {

template <class T>
struct Logistic {
  T value, complement;  // sigmoid(x), sigmoid(-x): both without cancellation
};

template <class T>
[[gnu::always_inline]] inline Logistic<T> logistic(T x) {
  const T e = exp_nonpositive(-absolute(x));
  const T d = T(1) / (T(1) + e);
  return {d * choose(x < T(0), e, T(1)), d * choose(x < T(0), T(1), e)};
}

}  // namespace detail

/// 1 / (1 + e^-x). Where e^-x leaves the range of T it is 0 or infinite, and the result exactly 1 or 0.
template <class T>
[[gnu::always_inline]] inline T sigmoid(T x) {
  using B = detail::Bits<T>;
  const T clamped = clamp(x, -B::exp_infinite, -B::exp_zero);
  const T shifted = std::fma(clamped, T(-1.4426950408889634), B::round);
  const T p = detail::exp_tail(detail::exp_remainder(-clamped, shifted));
  return T(1) / std::fma(p, detail::power_of_two(shifted), T(1));
}

template <class T>
[[gnu::always_inline]] inline T silu(T x) {
  return x * sigmoid(x);
}

/// d silu / dx.
template <class T>
[[gnu::always_inline]] inline T silu_slope(T x) {
  const auto s = detail::logistic(x);
  return s.value * (T(1) + x * s.complement);
}

template <class T>
[[gnu::always_inline]] inline T softplus(T x) {
  return choose(x < T(0), T(0), x) + log1p_unit(exp_nonpositive(-absolute(x)));
}

template <class T>
[[gnu::always_inline]] inline T log_sigmoid(T x) {
  return choose(x > T(0), T(0), x) - log1p_unit(exp_nonpositive(-absolute(x)));
}

namespace detail {

/// Coefficients from the highest power down.
template <class T, std::size_t N>
[[gnu::always_inline]] inline T polynomial(const double (&c)[N], T x) {
  T p = static_cast<T>(c[0]);
  for (std::size_t i = 1; i < N; ++i) p = p * x + static_cast<T>(c[i]);
  return p;
}

}  // namespace detail

/// 1 - erf(x) for x >= 0: the rational approximations of Cody, "Rational Chebyshev approximations for the error function",
/// 1969, all three evaluated and one chosen. In double the absolute error is below 1e-15.
template <class T>
[[gnu::always_inline]] inline T erfc_positive(T x) {
  constexpr double a[] = {1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2,
                          3.20937758913846947e3};
  constexpr double b[] = {1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3};
  constexpr double c[] = {2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0,
                          6.61191906371416295e1,  2.98635138197400131e2,  8.81952221241769090e2,
                          1.71204761263407058e3,  2.05107837782607147e3,  1.23033935479799725e3};
  constexpr double d[] = {1.0,                   1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2,
                          1.62138957456669019e3, 3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3,
                          1.23033935480374942e3};
  constexpr double p[] = {1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
                          1.60837851487422766e-2, 6.58749161529837803e-4};
  constexpr double q[] = {1.0, 2.56852019228982242e0, 1.87295284992346725e0, 5.27905102951428412e-1,
                          6.05183413124413191e-2, 2.33520497626869185e-3};
  constexpr T root = T(0.56418958354775628695);  // 1 / sqrt(pi)
  const T near = choose(x < T(0.46875), x, T(0.46875)), far = choose(x < T(4), T(4), x);
  const T middle = choose(x < T(4), x, T(4));
  const T square = near * near;
  const T small = T(1) - near * detail::polynomial(a, square) / detail::polynomial(b, square);
  const T decay = math::exp(-x * x);
  const T medium = decay * detail::polynomial(c, middle) / detail::polynomial(d, middle);
  const T z = T(1) / (far * far);
  const T large = decay / far * (root - z * detail::polynomial(p, z) / detail::polynomial(q, z));
  return choose(x < T(0.46875), small, choose(x < T(4), medium, large));
}

/// The share of a standard normal distribution below x, (1 + erf(x / sqrt 2)) / 2.
template <class T>
[[gnu::always_inline]] inline T normal_share(T x) {
  const T half = T(0.5) * erfc_positive(absolute(x) * T(0.70710678118654752440));
  return choose(x < T(0), half, T(1) - half);
}

/// Angle in [-pi, pi] that differs from `angle` by whole turns, for |angle| up to about 1e15. In double, always: phases
/// are sums over time and would drift in single precision.
[[gnu::always_inline]] inline double reduce_angle(double angle) {
  constexpr double two_pi_high = 6.2831853071795862, two_pi_low = 2.4492935982947064e-16;
  const double turns = std::fma(angle, 0.15915494309189535, detail::Bits<double>::round) - detail::Bits<double>::round;
  return std::fma(turns, -two_pi_low, std::fma(turns, -two_pi_high, angle));
}

template <class T>
struct SinCos {
  T sin, cos;
};

/// Sine and cosine, for |angle| up to about 1e6 (float) or 1e9 (double). The values of larger angles mean nothing,
/// since nobody should have such a phase unreduced.
template <class T>
[[gnu::always_inline]] inline SinCos<T> sincos(T angle) {
  using B = detail::Bits<T>;
  using U = typename B::Unsigned;
  const T shifted = std::fma(angle, T(0.63661977236758134), B::round);
  const T quarter = shifted - B::round;
  const U q = detail::bits(shifted) - detail::bits(B::round);
  T r, s, c;
  if constexpr (std::is_same_v<T, float>) {
    r = std::fma(quarter, -1.5707963705062866f, angle);  // exact, and so is the double one
    r = std::fma(quarter, 4.371138828673793e-08f, r);
    r = std::fma(quarter, 1.7151245100058819e-15f, r);
    const T z = r * r;
    s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * (z * r) + r;
    c = ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * (z * z) + (T(1) - 0.5f * z);
  } else {
    r = std::fma(quarter, -1.5707963267948966, angle);
    r = std::fma(quarter, -6.123233995736766e-17, r);
    const T z = r * r;
    s = 1.58969099521155010221e-10;
    s = s * z - 2.50507602534068634195e-08;
    s = s * z + 2.75573137070700676789e-06;
    s = s * z - 1.98412698298579493134e-04;
    s = s * z + 8.33333333332248946124e-03;
    s = s * z - 1.66666666666666324348e-01;
    s = s * (z * r) + r;
    c = -1.13596475577881948265e-11;
    c = c * z + 2.08757232129817482790e-09;
    c = c * z - 2.75573143513906633035e-07;
    c = c * z + 2.48015872894767294178e-05;
    c = c * z - 1.38888888888741095749e-03;
    c = c * z + 4.16666666666666019037e-02;
    c = c * (z * z) + (T(1) - 0.5 * z);
  }
  // Odd quarters swap the two; the sign bit of each is bit 1 of q or of q + 1.
  const U swap = U(0) - (q & 1);
  const U sin_bits = (detail::bits(c) & swap) | (detail::bits(s) & ~swap);
  const U cos_bits = (detail::bits(s) & swap) | (detail::bits(c) & ~swap);
  constexpr int top = std::numeric_limits<U>::digits - 2;
  constexpr U sign = U(1) << (top + 1);
  return {std::bit_cast<T>(sin_bits ^ ((q << top) & sign)), std::bit_cast<T>(cos_bits ^ (((q + 1) << top) & sign))};
}

}  // namespace phasor::math
