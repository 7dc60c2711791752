#include "analysis/statistics.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstddef>
#include <utility>

#include "core/base/error.h"

namespace phasor::analysis {

namespace {

Statistics describe_logarithms(const std::vector<double>& values) {
  std::vector<double> logarithms;
  for (const double value : values) logarithms.push_back(std::log(value));
  Statistics result = describe(std::move(logarithms));
  if (values.empty()) return result;
  result.min = *std::min_element(values.begin(), values.end());
  result.max = *std::max_element(values.begin(), values.end());
  const bool equal = *result.min == *result.max;
  result.mean = equal ? *result.min : std::exp(*result.mean);
  result.median = equal ? *result.min : std::exp(*result.median);
  if (result.sd) *result.sd *= *result.mean;
  if (result.half_width) *result.half_width *= *result.mean;
  return result;
}

}  // namespace

Statistics describe(std::vector<double> values, Scale scale) {
  if (scale == Scale::logarithmic) return describe_logarithms(values);
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
  return result;
}

}  // namespace phasor::analysis
