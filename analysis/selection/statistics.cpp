#include "analysis/selection/statistics.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstddef>
#include <utility>

#include "core/base/error.h"

namespace phasor::analysis {

namespace {

Statistics describe_logarithms(const std::vector<double>& values, const Bounds& bounds) {
  std::vector<double> logarithms;
  for (const double value : values) logarithms.push_back(std::log(value));
  Statistics result = describe(std::move(logarithms), Scale::linear, {std::log(std::max(0.0, bounds.low)), std::log(bounds.high)});
  if (values.empty()) return result;
  result.min = *std::min_element(values.begin(), values.end());
  result.max = *std::max_element(values.begin(), values.end());
  const bool equal = *result.min == *result.max;
  result.mean = equal ? *result.min : std::exp(*result.mean);
  result.median = equal ? *result.min : std::exp(*result.median);
  if (result.sd) *result.sd *= *result.mean;
  if (result.half_width) *result.half_width *= *result.mean;
  if (result.interval) {
    const Interval& logarithm = *result.interval;
    result.interval = equal ? Interval{*result.min, *result.min} : Interval{std::exp(logarithm.low), std::exp(logarithm.high)};
  }
  return result;
}

std::optional<Interval> interval_of(const Statistics& s, const Bounds& bounds) {
  if (*s.min < bounds.low || *s.max > bounds.high) return std::nullopt;
  if (!bounds.solved_or_not || !bounds.both()) return Interval{std::max(bounds.low, *s.mean - *s.half_width), std::min(bounds.high, *s.mean + *s.half_width)};
  const double width = bounds.high - bounds.low;
  const Interval share = wilson(std::clamp((*s.mean - bounds.low) / width, 0.0, 1.0), s.n);
  return Interval{bounds.low + width * share.low, bounds.low + width * share.high};
}

}  // namespace

Interval wilson(double mean, std::int64_t n) {
  PHASOR_CHECK(n > 0 && mean >= 0.0 && mean <= 1.0, "an interval of a share of nothing, or outside 0 to 1");
  constexpr double z = 1.959963984540054;  // of the standard normal distribution, 97.5 %
  const double count = static_cast<double>(n), spread = z * z / count;
  const double center = (mean + spread / 2) / (1 + spread);
  const double reach = z * std::sqrt(mean * (1 - mean) / count + spread / (4 * count)) / (1 + spread);
  return {mean == 0.0 ? 0.0 : std::max(0.0, center - reach), mean == 1.0 ? 1.0 : std::min(1.0, center + reach)};
}

bool two_groups(std::vector<double> values) {
  if (values.size() < 3) return false;
  std::sort(values.begin(), values.end());
  std::size_t above = 1;  // the first of the upper group
  for (std::size_t i = 2; i < values.size(); ++i) {
    if (values[i] - values[i - 1] > values[above] - values[above - 1]) above = i;
  }
  const double gap = values[above] - values[above - 1];
  return gap >= 0.25 && gap > values[above - 1] - values.front() && gap > values.back() - values[above];
}

Statistics describe(std::vector<double> values, Scale scale, const Bounds& bounds) {
  if (scale == Scale::logarithmic) return describe_logarithms(values, bounds);
  Statistics result;
  result.n = static_cast<std::int64_t>(values.size());
  if (values.empty()) return result;
  for (const double value : values) PHASOR_CHECK(std::isfinite(value), "statistics of a number that is not finite");
  std::sort(values.begin(), values.end());  // the order of the trials must not show in the last digit
  const std::size_t n = values.size();
  result.min = values.front();
  result.max = values.back();
  result.median = n % 2 == 1 ? values[n / 2] : values[n / 2 - 1] + (values[n / 2] - values[n / 2 - 1]) / 2;

  long double sum = 0;
  for (const double value : values) sum += static_cast<long double>(value);
  const long double mean = sum / static_cast<long double>(n);
  result.mean = static_cast<double>(mean);
  if (n < 2) return result;
  long double squares = 0;
  for (const double value : values) {
    const long double away = static_cast<long double>(value) - mean;
    squares += away * away;
  }
  // Equal values must give exactly 0, also where long double is no wider than double.
  const bool equal = values.front() == values.back();
  result.sd = equal ? 0.0 : static_cast<double>(std::sqrt(squares / static_cast<long double>(n - 1)));
  const boost::math::students_t distribution(static_cast<double>(n - 1));
  result.half_width = boost::math::quantile(distribution, 0.975) * *result.sd / std::sqrt(static_cast<double>(n));
  result.interval = interval_of(result, bounds);
  return result;
}

}  // namespace phasor::analysis
