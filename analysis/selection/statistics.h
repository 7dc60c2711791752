#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace phasor::analysis {

struct Interval {
  double low = 0.0, high = 0.0;
};

/// What a metric can be at all.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool solved_or_not = false;  // outcomes are near one end or the other: what one seed shows, the next need not

  bool both() const { return low > -std::numeric_limits<double>::infinity() && high < std::numeric_limits<double>::infinity(); }
};

/// Of a few numbers, one a seed. All empty when there are none; the deviation and the intervals are empty for fewer than two.
///
/// Two 95 % intervals of the mean. `half_width` is Student's t with n - 1 degrees of freedom: right where replicates scatter
/// around one value. `interval` never leaves the bounds: Student's t cut at them, on the scale of the values; of outcomes that are
/// solved or not the score interval (Wilson 1927) with the most that a share can vary, mean (1 - mean). That one is wide, and
/// covers also when few seeds show only one of two groups (docs/decisions.md, "Intervals of a few seeds").
struct Statistics {
  std::int64_t n = 0;
  std::optional<double> mean;
  std::optional<double> sd;  // n - 1 in the denominator
  std::optional<double> half_width;
  std::optional<Interval> interval;  // none where a value is outside the bounds
  std::optional<double> median, min, max;
};

/// On which values are averaged. Logarithmic, for perplexities: mean and median are those of the logarithms, brought back, and
/// deviation and half width are those of the logarithms times the mean.
enum class Scale { linear, logarithmic };

/// `values` must be finite, and above zero on the logarithmic scale; their order does not matter.
Statistics describe(std::vector<double> values, Scale scale = Scale::linear, const Bounds& bounds = {});

/// 95 % interval of a share of which `mean` was found among `n` (Wilson, "Probable inference", 1927). `mean` of 0 to 1, n > 0.
Interval wilson(double mean, std::int64_t n);

/// Whether values from 0 to 1 fall into two groups, whose mean tells of neither: where the sorted values have their widest gap,
/// it is at least a quarter, and wider than either group. At least three values.
bool two_groups(std::vector<double> values);

}  // namespace phasor::analysis
