#include "analysis/selection/paired.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>

#include "core/base/error.h"

namespace phasor::analysis {
namespace {

TEST(SignFlip, EveryChoiceOfSignsIsCounted) {
  EXPECT_EQ(sign_flip({0.3, 0.3, 0.3}), 0.25);             // two of eight
  EXPECT_EQ(sign_flip({-0.3, -0.3, -0.3}), 0.25);
  EXPECT_EQ(sign_flip({1.0, 2.0, -4.0}), 1.0);             // |sum| 1 is the least there is
  EXPECT_EQ(sign_flip({1.0, 2.0, 4.0, -0.5}), 0.25);       // 6.5 of 7.5: +7.5, +6.5 and their opposites
  EXPECT_EQ(sign_flip({1, 1, 1, 1, 1, 1, 1, 1}), 0.0078125);
  EXPECT_EQ(sign_flip({0.7}), 1.0);
  EXPECT_EQ(sign_flip({0.0, 0.0, 0.0}), 1.0);
  EXPECT_EQ(sign_flip({}), 1.0);
  EXPECT_EQ(sign_flip({0.0, 0.0, 0.5}), 1.0);  // what does not differ does not help
}

// Ten times 0.1 is 1 but for rounding: sums that are equal count as such.
TEST(SignFlip, SumsThatAreEqualButForRoundingAreEqual) {
  EXPECT_EQ(sign_flip({0.1, 0.2, 0.3, 0.3}), 0.125);  // .9 alone, whatever the order of adding
  EXPECT_EQ(sign_flip({0.1, 0.2, -0.3, 0.3}), 0.75);
}

TEST(SignFlip, ManyDifferencesAreDrawnAtRandomAndAlwaysAlike) {
  std::vector<double> some(31), none(31);
  for (std::size_t i = 0; i < some.size(); ++i) {
    some[i] = 1.0;
    none[i] = i % 2 == 0 ? 1.0 : -1.0;  // the sum is 1, the least that is possible
  }
  EXPECT_EQ(sign_flip(some), smallest_sign_flip(31));
  EXPECT_EQ(sign_flip(none), 1.0);
  EXPECT_EQ(smallest_sign_flip(31), 1e-4);
  std::vector<double> between(40);
  for (std::size_t i = 0; i < between.size(); ++i) between[i] = i % 3 == 0 ? -1.0 : 1.0;  // 26 against 14
  EXPECT_NEAR(sign_flip(between), 0.0807, 0.009);  // binomial, two-sided; three deviations of 10,000 draws
  EXPECT_EQ(sign_flip(between), sign_flip(between));
}

TEST(SignFlip, TheSmallestPossible) {
  EXPECT_EQ(smallest_sign_flip(1), 1.0);
  EXPECT_EQ(smallest_sign_flip(3), 0.25);
  EXPECT_EQ(smallest_sign_flip(8), 0.0078125);
  for (std::size_t n = 1; n <= 12; ++n) EXPECT_EQ(sign_flip(std::vector<double>(n, 0.1)), smallest_sign_flip(static_cast<std::int64_t>(n)));
}

TEST(Holm, CorrectsInOrderAndNeverDecreases) {
  EXPECT_EQ(holm({0.01, 0.04, 0.03, 0.005}), (std::vector<double>{0.03, 0.06, 0.06, 0.02}));
  EXPECT_EQ(holm({0.5, 0.6}), (std::vector<double>{1.0, 1.0}));
  EXPECT_EQ(holm({0.2}), (std::vector<double>{0.2}));
  EXPECT_TRUE(holm({}).empty());
}

TEST(Bootstrap, FewDifferencesGiveTheirRange) {
  // Of three, all the least is one draw in 27: more than 2.5 %.
  const Interval three = Bootstrap(3).interval({0.5, -0.25, 1.0});
  EXPECT_EQ(three.low, -0.25);
  EXPECT_EQ(three.high, 1.0);
  const Interval one = Bootstrap(1).interval({0.5});
  EXPECT_EQ(one.low, 0.5);
  EXPECT_EQ(one.high, 0.5);
}

/// All n^n draws, the plain way.
Interval every_draw(const std::vector<double>& values) {
  const std::size_t n = values.size();
  std::size_t draws = 1;
  for (std::size_t i = 0; i < n; ++i) draws *= n;
  std::vector<double> means;
  for (std::size_t draw = 0; draw < draws; ++draw) {
    double sum = 0.0;
    for (std::size_t i = 0, rest = draw; i < n; ++i, rest /= n) sum += values[rest % n];
    means.push_back(sum / static_cast<double>(n));
  }
  std::sort(means.begin(), means.end());
  const auto tail = static_cast<std::size_t>(std::ceil(0.025 * static_cast<double>(draws))) - 1;
  return {means[tail], means[draws - 1 - tail]};
}

TEST(Bootstrap, UpToEightEveryDrawCounts) {
  const std::vector<double> all = {0.11, -0.37, 0.05, 0.92, 0.4, 0.63, -0.08};
  for (std::size_t n = 2; n <= all.size(); ++n) {
    const std::vector<double> values(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
    const Interval found = Bootstrap(n).interval(values), expected = every_draw(values);
    EXPECT_NEAR(found.low, expected.low, 1e-12) << n;
    EXPECT_NEAR(found.high, expected.high, 1e-12) << n;
  }
}

TEST(Bootstrap, BeyondEightAFixedSeedDraws) {
  std::vector<double> values(20);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>((i * 7) % 20) / 20.0;  // mean .475, sd .288
  const Interval found = Bootstrap(20).interval(values);
  EXPECT_NEAR(found.low, 0.475 - 1.96 * 0.2883 / std::sqrt(20.0), 0.01);  // the normal limit, with n in the denominator
  EXPECT_NEAR(found.high, 0.475 + 1.96 * 0.2883 / std::sqrt(20.0), 0.01);
  const Interval again = Bootstrap(20).interval(values);
  EXPECT_EQ(found.low, again.low);
  EXPECT_EQ(found.high, again.high);
  EXPECT_THROW(Bootstrap(19).interval(values), InternalError);
}

TEST(Wilson, KnownValues) {
  const Interval half = wilson(0.5, 10);  // 5 of 10
  EXPECT_NEAR(half.low, 0.23659, 5e-6);
  EXPECT_NEAR(half.high, 0.76341, 5e-6);
  EXPECT_EQ(wilson(0.0, 3).low, 0.0);
  EXPECT_NEAR(wilson(0.0, 3).high, 0.56150, 5e-6);
  EXPECT_EQ(wilson(1.0, 3).high, 1.0);
  EXPECT_NEAR(wilson(1.0, 3).low, 0.43850, 5e-6);
  EXPECT_THROW(wilson(0.5, 0), InternalError);
  EXPECT_THROW(wilson(1.1, 3), InternalError);
}

TEST(TwoGroups, AGapWiderThanEitherGroup) {
  EXPECT_TRUE(two_groups({1.0, 0.0, 1.0}));
  EXPECT_TRUE(two_groups({0.99, 1.0, 0.98, 0.412, 1.0}));
  EXPECT_FALSE(two_groups({0.90, 0.92, 0.94}));
  EXPECT_FALSE(two_groups({0.0, 0.24, 0.02}));       // less than a quarter
  EXPECT_FALSE(two_groups({0.0, 0.3, 0.6, 0.9}));    // no gap is wider than what it leaves
  EXPECT_FALSE(two_groups({0.0, 1.0}));              // of two nobody knows
  EXPECT_TRUE(two_groups({0.0, 0.1, 0.2, 0.7, 0.8}));
}

TEST(Intervals, NeverLeaveTheBounds) {
  const Bounds share{0.0, 1.0};
  const Statistics near_one = describe({0.999, 0.99, 1.0}, Scale::linear, share);
  EXPECT_EQ(near_one.interval->high, 1.0);
  EXPECT_DOUBLE_EQ(near_one.interval->low, *near_one.mean - *near_one.half_width);
  const Bounds outcome{0.0, 1.0, true};
  const Statistics solved = describe({1.0, 1.0, 1.0}, Scale::linear, outcome);
  EXPECT_EQ(*solved.half_width, 0.0);  // which knows nothing of seeds that fail
  EXPECT_NEAR(solved.interval->low, 0.43850, 5e-6);
  EXPECT_EQ(solved.interval->high, 1.0);
  const Bounds percent{0.0, 100.0, true};
  EXPECT_NEAR(describe({100, 100, 100}, Scale::linear, percent).interval->low, 43.850, 5e-4);
  const Statistics loss = describe({0.01, 0.5, 0.02}, Scale::linear, {0.0, std::numeric_limits<double>::infinity()});
  EXPECT_EQ(loss.interval->low, 0.0);
  EXPECT_GT(loss.interval->high, 0.8);
  const Statistics perplexity = describe({std::exp(0.1), std::exp(0.9)}, Scale::logarithmic, {1.0, std::numeric_limits<double>::infinity()});
  EXPECT_EQ(perplexity.interval->low, 1.0);
  EXPECT_NEAR(perplexity.interval->high, std::exp(0.5 + 12.7062047 * 0.4), 1e-4);
  EXPECT_FALSE(describe({0.5}, Scale::linear, share).interval.has_value());
  EXPECT_FALSE(describe({0.5, 1.5}, Scale::linear, share).interval.has_value());
}

}  // namespace
}  // namespace phasor::analysis
