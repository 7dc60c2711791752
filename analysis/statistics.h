#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace phasor::analysis {

/// Of a few numbers, one a seed. All empty when there are none; the deviation and the interval are empty for fewer than two.
struct Statistics {
  std::int64_t n = 0;
  std::optional<double> mean;
  std::optional<double> sd;          // n - 1 in the denominator
  std::optional<double> half_width;  // of the 95 % interval around the mean, Student's t with n - 1 degrees of freedom
  std::optional<double> median, min, max;
};

/// On which values are averaged. Logarithmic, for perplexities: mean and median are those of the logarithms, brought back, and
/// deviation and half width are those of the logarithms times the mean.
enum class Scale { linear, logarithmic };

/// `values` must be finite, and above zero on the logarithmic scale; their order does not matter.
Statistics describe(std::vector<double> values, Scale scale = Scale::linear);

}  // namespace phasor::analysis
