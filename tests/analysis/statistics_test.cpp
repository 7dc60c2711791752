#include "analysis/selection/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "analysis/selection/metric.h"
#include "analysis/text.h"
#include "core/base/error.h"

namespace phasor::analysis {
namespace {

TEST(Statistics, OfThreeValues) {  // L39
  const Statistics s = describe({0.94, 0.90, 0.92});
  EXPECT_EQ(s.n, 3);
  EXPECT_EQ(digits(s.mean), "0.9200");
  EXPECT_EQ(digits(s.sd), "0.0200");  // n - 1; with n it would be 0.0163
  EXPECT_EQ(digits(s.half_width), "0.0497");  // t of 2 degrees of freedom: 4.3027 * 0.02 / sqrt(3)
  EXPECT_DOUBLE_EQ(*s.median, 0.92);
  EXPECT_DOUBLE_EQ(*s.min, 0.90);
  EXPECT_DOUBLE_EQ(*s.max, 0.94);
}

TEST(Statistics, OneValueHasNoDeviation) {
  const Statistics s = describe({0.5});
  EXPECT_EQ(s.n, 1);
  EXPECT_EQ(digits(s.mean), "0.5000");
  EXPECT_FALSE(s.sd.has_value());
  EXPECT_FALSE(s.half_width.has_value());
  EXPECT_EQ(digits(s.sd), "");
  EXPECT_EQ(*s.median, 0.5);
}

TEST(Statistics, NothingHasNothing) {
  const Statistics s = describe({});
  EXPECT_EQ(s.n, 0);
  EXPECT_FALSE(s.mean || s.sd || s.median || s.min || s.max);
}

TEST(Statistics, EqualValuesDeviateByExactlyZero) {
  EXPECT_EQ(*describe({0.8, 0.8, 0.8}).sd, 0.0);
  EXPECT_EQ(*describe({0.1, 0.1, 0.1, 0.1, 0.1, 0.1}).sd, 0.0);
}

TEST(Statistics, OrderDoesNotMatterAndTheMedianOfFourIsBetween) {
  EXPECT_EQ(*describe({0.1, 0.7, 0.3, 0.2}).mean, *describe({0.7, 0.2, 0.1, 0.3}).mean);
  EXPECT_DOUBLE_EQ(*describe({0.4, 0.1, 0.3, 0.2}).median, 0.25);
}

TEST(Statistics, ANumberThatIsNotFiniteIsOurMistake) {
  EXPECT_THROW(describe({0.1, std::numeric_limits<double>::quiet_NaN()}), InternalError);
}

TEST(Digits, FourDecimalsAndNeverAFalseZero) {
  EXPECT_EQ(digits(0.92530001), "0.9253");
  EXPECT_EQ(digits(25.5), "25.5000");
  EXPECT_EQ(digits(0.0), "0.0000");
  EXPECT_EQ(digits(0.000049), "4.9e-05");
  EXPECT_EQ(digits(-3e-9), "-3.0e-09");
  EXPECT_EQ(digits(2.5e12), "2.5000e+12");
  EXPECT_EQ(digits(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(digits(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(short_digits("0.9253"), ".9253");
  EXPECT_EQ(short_digits("-0.5000"), "-.5000");
  EXPECT_EQ(short_digits("1.0000"), "1.0000");
  EXPECT_EQ(grouped(13392), "13,392");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(grouped(999), "999");
}

TEST(Metric, DirectionsFollowFromTheName) {
  EXPECT_EQ(direction_of("loss"), Direction::minimise);
  EXPECT_EQ(direction_of("bits_per_byte"), Direction::minimise);
  EXPECT_EQ(direction_of("position_perplexity"), Direction::minimise);
  EXPECT_EQ(direction_of("perplexity"), Direction::minimise);
  EXPECT_EQ(direction_of("steps_to_solve"), Direction::minimise);
  EXPECT_EQ(direction_of("sequence_accuracy"), Direction::maximise);
  EXPECT_EQ(direction_of("accuracy"), Direction::maximise);
  EXPECT_FALSE(direction_of("speed").has_value());
  EXPECT_FALSE(direction_of("glossiness").has_value());
}

/// Curves of L30: A 9, 7, 5 and B 10, 4, 10, written in no order.
TEST(Metric, FinalBestAndMeanOfTheLast) {
  const std::vector<results::EvalPoint> b = {{3, "valid", "loss", -1, 10, 1}, {1, "valid", "loss", -1, 10, 1},
                                             {2, "valid", "loss", -1, 4, 1},  {9, "valid", "loss", 32, 1, 1},
                                             {9, "test", "loss", -1, 1, 1},   {9, "valid", "accuracy", -1, 1, 1}};
  const Series series{"valid", "loss", -1};
  const Direction down = Direction::minimise;
  EXPECT_EQ(read_metric(b, series, {At::Rule::final, 1}, down)->value, 10);
  EXPECT_EQ(read_metric(b, series, {At::Rule::final, 1}, down)->step, 3);
  EXPECT_EQ(read_metric(b, series, {At::Rule::best, 1}, down)->value, 4);
  EXPECT_EQ(read_metric(b, series, {At::Rule::best, 1}, down)->step, 2);
  EXPECT_EQ(read_metric(b, series, {At::Rule::best, 1}, Direction::maximise)->value, 10);
  EXPECT_EQ(read_metric(b, series, {At::Rule::best, 1}, Direction::maximise)->step, 1);  // the earliest of equals
  EXPECT_EQ(read_metric(b, series, {At::Rule::mean_last, 2}, down)->value, 7);
  EXPECT_FALSE(read_metric(b, series, {At::Rule::mean_last, 3}, down)->too_few);
  EXPECT_TRUE(read_metric(b, series, {At::Rule::mean_last, 4}, down)->too_few);
  EXPECT_FALSE(read_metric(b, {"valid", "loss", 64}, {}, down).has_value());
}

TEST(Metric, BestLooksAtFiniteValuesOnly) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<results::EvalPoint> curve = {{1, "valid", "loss", -1, -infinity, 1}, {2, "valid", "loss", -1, 3, 1},
                                                 {3, "valid", "loss", -1, std::numeric_limits<double>::quiet_NaN(), 1}};
  EXPECT_EQ(read_metric(curve, {"valid", "loss", -1}, {At::Rule::best, 1}, Direction::minimise)->value, 3);
}

TEST(Statistics, PerplexitiesAreAveragedOnTheLogarithmicScale) {
  EXPECT_EQ(scale_of("position_perplexity"), Scale::logarithmic);
  EXPECT_EQ(scale_of("loss"), Scale::linear);
  // Of losses 1, 2 and 6 the mean is 3 and the deviation sqrt(7).
  const Statistics found = describe({std::exp(6.0), std::exp(1.0), std::exp(2.0)}, Scale::logarithmic);
  EXPECT_NEAR(*found.mean, std::exp(3.0), 1e-12);
  EXPECT_NEAR(*found.median, std::exp(2.0), 1e-12);
  EXPECT_NEAR(*found.sd, std::exp(3.0) * std::sqrt(7.0), 1e-9);
  EXPECT_EQ(*found.min, std::exp(1.0));
  EXPECT_EQ(*found.max, std::exp(6.0));
  const Statistics same = describe({7.3, 7.3}, Scale::logarithmic);
  EXPECT_EQ(*same.mean, 7.3);
  EXPECT_EQ(*same.sd, 0.0);
  EXPECT_EQ(describe({}, Scale::logarithmic).mean, std::nullopt);
}

}  // namespace
}  // namespace phasor::analysis
