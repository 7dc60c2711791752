#include "core/base/portable_math.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace phasor::portable {

namespace {

constexpr double ln2_high = 0x1.62e42fefa39efp-1, ln2_low = 0x1.abc9e3b39803fp-56;
constexpr double half_pi_1 = 0x1.921fb54442d18p0, half_pi_2 = 0x1.1a62633145c07p-54,
                 half_pi_3 = -0x1.f1976b7ed8fbcp-110;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// c[0] + c[1] x + c[2] x^2 + ...
template <std::size_t size>
double horner(double x, const std::array<double, size>& c) {
  double sum = c[size - 1];
  for (std::size_t i = size - 1; i-- > 0;) sum = std::fma(sum, x, c[i]);
  return sum;
}

constexpr double factorial(int n) { return n <= 1 ? 1.0 : n * factorial(n - 1); }

/// 1 / (2i + 3): the series of artanh after its first term.
constexpr auto artanh_terms = [] {
  std::array<double, 11> c{};
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = 1.0 / (2.0 * static_cast<double>(i) + 3.0);
  return c;
}();
constexpr auto exp_terms = [] {  // 1/2! 1/3! ...
  std::array<double, 12> c{};
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = 1.0 / factorial(static_cast<int>(i) + 2);
  return c;
}();
constexpr auto sin_terms = [] {  // -1/3! 1/5! ...
  std::array<double, 8> c{};
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = (i % 2 == 0 ? -1.0 : 1.0) / factorial(2 * static_cast<int>(i) + 3);
  return c;
}();
constexpr auto cos_terms = [] {  // 1/4! -1/6! ...
  std::array<double, 7> c{};
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = (i % 2 == 0 ? 1.0 : -1.0) / factorial(2 * static_cast<int>(i) + 4);
  return c;
}();

/// 2^k for a k whose power is a normal number.
double power_of_two(std::int64_t k) { return std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52); }

/// Turns by `quarters` the sine and cosine of a small angle, |x| <= pi/4.
SinCos turned(double x, std::int64_t quarters) {
  const double square = x * x;
  const double cubic = x * square;
  const double sine = std::fma(cubic, horner(square, sin_terms), x);
  const double fourth = square * square;
  const double cosine = std::fma(fourth, horner(square, cos_terms), std::fma(-0.5, square, 1.0));
  switch (quarters & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

}  // namespace

double log(double x) {
  if (x == 0.0) return -infinity;
  if (!(x > 0.0)) return std::numeric_limits<double>::quiet_NaN();
  if (x == infinity) return x;
  double exponent = 0.0;
  if (x < std::numeric_limits<double>::min()) {  // subnormal
    x *= 0x1p54;
    exponent = -54.0;
  }
  const auto bits = std::bit_cast<std::uint64_t>(x);
  exponent += static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
  double mantissa = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFu) | 0x3FF0000000000000u);
  if (mantissa > 0x1.6a09e667f3bcdp0) {  // the square root of 2: keeps |s| below 0.172
    mantissa *= 0.5;
    exponent += 1.0;
  }
  // log m = 2 artanh s with s = (m - 1) / (m + 1), here as f - s (f - 2 s^2 p) with f = m - 1, which is exact: no
  // rounding of s enters the leading term.
  const double f = mantissa - 1.0;
  const double s = f / (mantissa + 1.0);
  const double square = s * s;
  const double tail = horner(square, artanh_terms);
  const double twice = 2.0 * square;
  const double inner = std::fma(-twice, tail, f);
  const double log_mantissa = std::fma(-s, inner, f);
  return std::fma(exponent, ln2_high, std::fma(exponent, ln2_low, log_mantissa));
}

double exp(double x) {
  if (x != x) return x;
  if (x > 709.782712893384) return infinity;
  if (x < -745.1332191019412) return 0.0;
  const double k = std::floor(std::fma(x, 0x1.71547652b82fep0, 0.5));
  const double r = std::fma(-k, ln2_low, std::fma(-k, ln2_high, x));
  const double square = r * r;
  const double power = std::fma(square, horner(r, exp_terms), r) + 1.0;
  // In two steps: 2^k itself may be beyond the normal numbers where the result is not.
  const auto whole = static_cast<std::int64_t>(k);
  const std::int64_t half = whole / 2;
  return power * power_of_two(half) * power_of_two(whole - half);
}

SinCos sincos(double radians) {
  const double k = std::floor(std::fma(radians, 0x1.45f306dc9c883p-1, 0.5));
  if (!(std::fabs(k) < 0x1p31)) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    return {nan, nan};
  }
  const double r = std::fma(-k, half_pi_3, std::fma(-k, half_pi_2, std::fma(-k, half_pi_1, radians)));
  return turned(r, static_cast<std::int64_t>(k));
}

SinCos sincos_turns(double turns) {
  if (!(std::fabs(turns) < infinity)) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    return {nan, nan};
  }
  if (std::fabs(turns) >= 0x1p50) turns -= std::floor(turns);  // only halves and quarters are left there
  const double k = std::floor(std::fma(turns, 4.0, 0.5));
  const double rest = std::fma(k, -0.25, turns);
  return turned(rest * 0x1.921fb54442d18p2, static_cast<std::int64_t>(k));
}

}  // namespace phasor::portable
