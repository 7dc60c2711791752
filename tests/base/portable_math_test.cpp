#include "core/base/portable_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>

#include "core/base/hash.h"
#include "core/base/philox.h"

namespace phasor {
namespace {

const RandomStream stream(1, Purpose{77});
constexpr long double pi = 3.14159265358979323846264338327950288L;

/// Positive doubles of every size.
double any_positive(std::uint64_t i) {
  const PhiloxBlock words = stream.block(i);
  const std::uint64_t bits = (words[0] | std::uint64_t{words[1]} << 32) & 0x7FFFFFFFFFFFFFFFu;
  const auto x = std::bit_cast<double>(bits);
  return std::isfinite(x) ? x : 1.5;
}

TEST(PortableMath, log) {
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const double near_one = 0.5 + 1.5 * stream.uniform(i);
    for (const double x : {any_positive(i), near_one, stream.uniform(i) + 0x1p-53}) {
      const long double exact = logl(static_cast<long double>(x));
      ASSERT_NEAR(static_cast<double>(portable::log(x) - exact), 0.0, 4e-16 * std::fabs(static_cast<double>(exact)))
          << x;
    }
  }
  EXPECT_EQ(portable::log(1.0), 0.0);
  EXPECT_EQ(portable::log(0.0), -INFINITY);
  EXPECT_EQ(portable::log(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(portable::log(-1.0)));
  EXPECT_TRUE(std::isnan(portable::log(NAN)));
  EXPECT_NEAR(portable::log(5e-324), -744.44007192138126, 1e-12);
  EXPECT_NEAR(portable::log(std::numeric_limits<double>::max()), 709.782712893384, 1e-12);
}

TEST(PortableMath, exp) {
  for (std::uint64_t i = 0; i < 100000; ++i) {
    for (const double x : {(stream.uniform(i) - 0.5) * 1400.0, stream.uniform(i) - 0.5}) {
      const auto exact = expl(static_cast<long double>(x));
      ASSERT_NEAR(static_cast<double>(portable::exp(x) / exact), 1.0, 5e-16) << x;
    }
  }
  EXPECT_EQ(portable::exp(0.0), 1.0);
  EXPECT_EQ(portable::exp(710.0), INFINITY);
  EXPECT_EQ(portable::exp(-746.0), 0.0);
  EXPECT_EQ(portable::exp(-INFINITY), 0.0);
  EXPECT_TRUE(std::isnan(portable::exp(NAN)));
  EXPECT_NEAR(portable::exp(709.78), 1.7928227943945155e308, 1e294);
  EXPECT_NEAR(portable::exp(-744.0) / 5e-324, 2.0, 0.1);
}

TEST(PortableMath, sine_and_cosine) {
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const double unit = stream.uniform(i) - 0.5;
    for (const double scale : {1.0, 20.0, 1e5, 2e9}) {
      const double x = unit * scale;
      const portable::SinCos found = portable::sincos(x);
      ASSERT_NEAR(static_cast<double>(found.sin - sinl(x)), 0.0, 3e-16) << x;
      ASSERT_NEAR(static_cast<double>(found.cos - cosl(x)), 0.0, 3e-16) << x;
    }
  }
  EXPECT_EQ(portable::sincos(0.0).cos, 1.0);
  EXPECT_EQ(portable::sincos(1e-300).sin, 1e-300);
  EXPECT_NEAR(portable::sincos(0x1.921fb54442d18p1).sin, 1.2246467991473532e-16, 1e-31);  // the rest of pi
  EXPECT_TRUE(std::isnan(portable::sincos(INFINITY).sin));
  EXPECT_TRUE(std::isnan(portable::sincos(NAN).cos));
  EXPECT_TRUE(std::isnan(portable::sincos(1e300).cos));
}

TEST(PortableMath, turns) {
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const double t = stream.uniform(i) * 4.0 - 2.0;
    const portable::SinCos found = portable::sincos_turns(t);
    ASSERT_NEAR(static_cast<double>(found.sin - sinl(2 * pi * t)), 0.0, 3e-16) << t;
    ASSERT_NEAR(static_cast<double>(found.cos - cosl(2 * pi * t)), 0.0, 3e-16) << t;
    const double far = std::floor(1e12 * t) + 0.125;  // whole turns change nothing
    ASSERT_EQ(portable::sincos_turns(far).sin, portable::sincos_turns(0.125).sin);
  }
  for (const double whole : {0.0, 1.0, -3.0, 1e15, 1e18, 1e300}) {
    EXPECT_EQ(portable::sincos_turns(whole).sin, 0.0);
    EXPECT_EQ(portable::sincos_turns(whole).cos, 1.0);
    if (whole < 1e15) {
      EXPECT_EQ(portable::sincos_turns(whole + 0.25).sin, 1.0);
      EXPECT_EQ(portable::sincos_turns(whole + 0.5).cos, -1.0);
      EXPECT_EQ(portable::sincos_turns(whole + 0.75).sin, -1.0);
    }
  }
  EXPECT_TRUE(std::isnan(portable::sincos_turns(INFINITY).sin));
}

/// The bits themselves: any change of compiler, flags or processor that moves one of them shows here.
TEST(PortableMath, bits_stay) {
  ContentHash hash;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    hash.update_value(stream.normal(i));
    hash.update_value(portable::log(any_positive(i)));
    hash.update_value(portable::exp(stream.uniform(i) * -700.0));
    hash.update_value(portable::sincos(stream.uniform(i) * 1e6).sin);
  }
  EXPECT_EQ(hash.hex(), "f769b69eeeb206761f83661e9c990bc1");
}

}  // namespace
}  // namespace phasor
