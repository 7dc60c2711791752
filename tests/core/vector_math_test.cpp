#include "core/ops/vector_math.h"

#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

namespace phasor::math {
namespace {

constexpr long double pi = 3.14159265358979323846264338327950288L;

/// Numbers in [low, high]: evenly spaced ones, and magnitudes evenly spaced in the logarithm, of both signs.
template <class T>
std::vector<T> points(double low, double high, int count = 40000) {
  std::vector<T> out;
  for (int i = 0; i <= count; ++i) {
    const double place = static_cast<double>(i) / count;
    out.push_back(static_cast<T>(low + (high - low) * place));
    const double magnitude = std::pow(10.0, -30.0 + 40.0 * place);
    for (const double x : {magnitude, -magnitude})
      if (x >= low && x <= high) out.push_back(static_cast<T>(x));
  }
  return out;
}

/// A loop as kernels have it, so that vector code and its remainder are what is tested.
template <class T, class Function>
std::vector<T> map(const std::vector<T>& x, Function function) {
  std::vector<T> y(x.size());
  const T* from = x.data();
  T* to = y.data();
  const auto count = static_cast<std::int64_t>(x.size());
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = function(from[i]);
  return y;
}

/// Distance between neighbours of T at x.
template <class T>
long double spacing(long double x) {
  int exponent = 0;
  std::frexp(std::max(std::abs(x), static_cast<long double>(std::numeric_limits<T>::min())), &exponent);
  return std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits);
}

/// The worst error in units of the last place; where the result is below `floor`, in units of the last place of
/// `floor`.
template <class T, class Function, class Reference>
double worst(const std::vector<T>& x, Function function, Reference reference, long double floor = 0.0L) {
  const std::vector<T> y = map(x, function);
  long double top = 0.0L;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double want = reference(static_cast<long double>(x[i]));
    const long double error =
        std::abs(static_cast<long double>(y[i]) - want) / spacing<T>(std::max(std::abs(want), floor));
    if (!(error <= top)) top = error;
    if (std::isnan(top)) break;
  }
  testing::Test::RecordProperty("worst", std::to_string(static_cast<double>(top)));
  return static_cast<double>(top);
}

long double softplus_exactly(long double x) { return std::max(x, 0.0L) + std::log1p(std::exp(-std::abs(x))); }

template <class T>
class VectorMath : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(VectorMath, Precisions);

TYPED_TEST(VectorMath, Exp) {
  using T = TypeParam;
  const double low = std::is_same_v<T, float> ? -87.33 : -708.39, high = std::is_same_v<T, float> ? 88.722 : 709.78;
  const auto f = [](T x) { return math::exp(x); };
  const auto want = [](long double x) { return std::exp(x); };
  EXPECT_LT(worst(points<T>(low, high), f, want), 1.5);
  EXPECT_LT(worst(points<T>(-1.0, 1.0), f, want), 1.5);
}

TYPED_TEST(VectorMath, Log) {
  using T = TypeParam;
  const auto f = [](T x) { return math::log(x); };
  const auto want = [](long double x) { return std::log(x); };
  EXPECT_LT(worst(points<T>(1e-37, 1e10), f, want), 1.5);
  EXPECT_LT(worst(points<T>(0.5, 2.0), f, want), 1.5);
  EXPECT_LT(worst(points<T>(0.999, 1.001), f, want), 1.5);
  EXPECT_LT(worst(points<T>(1e30, 1e38), f, want), 1.5);
  const std::vector<T> tiny{std::numeric_limits<T>::denorm_min(), std::numeric_limits<T>::denorm_min() * T(12345),
                            std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
  EXPECT_LT(worst(tiny, f, want), 1.5);
}

TYPED_TEST(VectorMath, Log1pOfTheUnitInterval) {
  using T = TypeParam;
  const auto f = [](T x) { return log1p_unit(x); };
  const auto want = [](long double x) { return std::log1p(x); };
  EXPECT_LT(worst(points<T>(0.0, 1.0), f, want), 3.0);
}

TYPED_TEST(VectorMath, Sigmoid) {
  using T = TypeParam;
  const auto f = [](T x) { return sigmoid(x); };
  const auto want = [](long double x) { return 1.0L / (1.0L + std::exp(-x)); };
  EXPECT_LT(worst(points<T>(-87.0, 100.0), f, want), 4.0);
}

TYPED_TEST(VectorMath, Silu) {
  using T = TypeParam;
  const auto f = [](T x) { return silu(x); };
  const auto want = [](long double x) { return x / (1.0L + std::exp(-x)); };
  EXPECT_LT(worst(points<T>(-87.0, 100.0), f, want), 4.0);
}

TYPED_TEST(VectorMath, SlopeOfSilu) {
  using T = TypeParam;
  const auto f = [](T x) { return silu_slope(x); };
  const auto want = [](long double x) {
    const long double s = 1.0L / (1.0L + std::exp(-x)), c = 1.0L / (1.0L + std::exp(x));
    return s * (1.0L + x * c);
  };
  EXPECT_LT(worst(points<T>(-1.0, 100.0), f, want), 4.0);
  EXPECT_LT(worst(points<T>(-87.0, -1.0), f, want, 0.125L), 4.0);  // it has a zero at -1.278
}

TYPED_TEST(VectorMath, SoftplusAndLogSigmoid) {
  using T = TypeParam;
  const auto f = [](T x) { return softplus(x); };
  const auto g = [](T x) { return log_sigmoid(x); };
  EXPECT_LT(worst(points<T>(-86.0, 100.0), f, softplus_exactly), 4.0);
  EXPECT_LT(worst(points<T>(-100.0, 86.0), g, [](long double x) { return -softplus_exactly(-x); }), 4.0);
}

TYPED_TEST(VectorMath, NormalShare) {
  using T = TypeParam;
  const auto f = [](T x) { return normal_share(x); };
  const auto want = [](long double x) { return 0.5L * std::erfc(-x / std::sqrt(2.0L)); };
  EXPECT_LT(worst(points<T>(-40.0, 40.0), f, want, 1.0L), 4.0);
  EXPECT_EQ(normal_share(T(0)), T(0.5));
  EXPECT_TRUE(std::isnan(normal_share(std::numeric_limits<T>::quiet_NaN())));
}

TYPED_TEST(VectorMath, SinAndCosOfReducedAngles) {
  using T = TypeParam;
  const auto f = [](T x) { return math::sincos(x).sin; };
  const auto g = [](T x) { return math::sincos(x).cos; };
  const auto sine = [](long double x) { return std::sin(x); };
  const auto cosine = [](long double x) { return std::cos(x); };
  EXPECT_LT(worst(points<T>(-6.4, 6.4), f, sine), 2.0);
  EXPECT_LT(worst(points<T>(-6.4, 6.4), g, cosine), 2.0);
}

TYPED_TEST(VectorMath, SinAndCosOfLargeAngles) {
  using T = TypeParam;
  const double top = std::is_same_v<T, float> ? 1e6 : 1e9;
  const auto f = [](T x) { return math::sincos(x).sin; };
  const auto g = [](T x) { return math::sincos(x).cos; };
  const auto sine = [](long double x) { return std::sin(x); };
  const auto cosine = [](long double x) { return std::cos(x); };
  EXPECT_LT(worst(points<T>(-top, top), f, sine, 0.5L), 2.0);
  EXPECT_LT(worst(points<T>(-top, top), g, cosine, 0.5L), 2.0);
  for (const T x : points<T>(-top, top)) {
    ASSERT_LE(std::abs(f(x)), T(1));
    ASSERT_LE(std::abs(g(x)), T(1));
  }
}

TEST(VectorMath, ReducedAngles) {
  const auto f = [](double x) { return reduce_angle(x); };
  const auto want = [](long double x) { return std::atan2(std::sin(x), std::cos(x)); };
  const std::vector<double> x = points<double>(-1e6, 1e6);
  EXPECT_LT(worst(x, f, want, 0.5L), 4.0);
  for (const double angle : x) ASSERT_LE(std::abs(f(angle)), 3.1415926535897940);
  // Near half turns either end is right.
  for (int i = -1000; i <= 1000; ++i) {
    const double angle = static_cast<double>(pi) * i;
    ASSERT_NEAR(std::sin(f(angle)), std::sin(angle), 1e-12);
    ASSERT_NEAR(std::cos(f(angle)), i % 2 == 0 ? 1.0 : -1.0, 1e-12);
  }
}

TYPED_TEST(VectorMath, EdgeValues) {
  using T = TypeParam;
  constexpr T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  constexpr T subnormal = std::numeric_limits<T>::denorm_min();
  EXPECT_EQ(math::exp(T(0)), T(1));
  EXPECT_EQ(math::exp(T(-0.0)), T(1));
  EXPECT_EQ(math::exp(subnormal), T(1));
  EXPECT_EQ(math::exp(infinity), infinity);
  EXPECT_EQ(math::exp(-infinity), T(0));
  EXPECT_EQ(math::exp(T(710)), infinity);
  EXPECT_EQ(math::exp(T(-745)), T(0));
  EXPECT_TRUE(std::isnan(math::exp(nan)));
  EXPECT_TRUE(std::isnan(math::exp(-nan)));
  if constexpr (std::is_same_v<T, float>) {
    EXPECT_TRUE(std::isfinite(math::exp(88.7f)));
    EXPECT_EQ(math::exp(88.73f), infinity);
    EXPECT_GT(math::exp(-87.3f), 0.0f);
    EXPECT_EQ(math::exp(-87.4f), 0.0f);  // no subnormal results
  } else {
    EXPECT_TRUE(std::isfinite(math::exp(709.0)));
    EXPECT_GT(math::exp(-708.0), 0.0);
    EXPECT_EQ(math::exp(-709.0), 0.0);
  }

  EXPECT_EQ(math::log(T(1)), T(0));
  EXPECT_EQ(math::log(T(0)), -infinity);
  EXPECT_EQ(math::log(T(-0.0)), -infinity);
  EXPECT_EQ(math::log(infinity), infinity);
  EXPECT_TRUE(std::isnan(math::log(T(-1))));
  EXPECT_TRUE(std::isnan(math::log(-infinity)));
  EXPECT_TRUE(std::isnan(math::log(-subnormal)));
  EXPECT_TRUE(std::isnan(math::log(nan)));
  EXPECT_EQ(log1p_unit(T(0)), T(0));
  EXPECT_EQ(log1p_unit(subnormal), subnormal);

  EXPECT_EQ(sigmoid(T(0)), T(0.5));
  EXPECT_EQ(sigmoid(infinity), T(1));
  EXPECT_EQ(sigmoid(-infinity), T(0));
  EXPECT_TRUE(std::isnan(sigmoid(nan)));
  EXPECT_EQ(silu(T(0)), T(0));
  EXPECT_EQ(silu(infinity), infinity);
  EXPECT_EQ(silu(T(-1000)), T(0));
  EXPECT_EQ(silu_slope(T(0)), T(0.5));
  EXPECT_EQ(silu_slope(T(1000)), T(1));
  EXPECT_EQ(silu_slope(T(-1000)), T(0));
  EXPECT_EQ(softplus(infinity), infinity);
  EXPECT_EQ(softplus(-infinity), T(0));
  EXPECT_EQ(log_sigmoid(-infinity), -infinity);
  EXPECT_EQ(log_sigmoid(infinity), T(0));
  EXPECT_TRUE(std::isnan(softplus(nan)));
  EXPECT_TRUE(std::isnan(log_sigmoid(nan)));

  EXPECT_EQ(math::sincos(T(0)).sin, T(0));
  EXPECT_EQ(math::sincos(T(0)).cos, T(1));
  EXPECT_EQ(math::sincos(T(-0.0)).sin, T(0));
  EXPECT_EQ(math::sincos(subnormal).sin, subnormal);
  EXPECT_TRUE(std::isnan(math::sincos(infinity).sin));
  EXPECT_TRUE(std::isnan(math::sincos(nan).cos));
  EXPECT_EQ(absolute(T(-0.0)), T(0));
  EXPECT_FALSE(std::signbit(absolute(T(-0.0))));
  EXPECT_EQ(absolute(T(-2)), T(2));
}

}  // namespace
}  // namespace phasor::math
