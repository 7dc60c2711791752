#include "analysis/selection/metric.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>

namespace phasor::analysis {
namespace {

bool ends_with_word(const std::string& name, const std::string& word) {
  return name == word || (name.size() > word.size() && name.ends_with("_" + word));
}

Reading best_of(const std::map<std::int64_t, double>& curve, Direction direction) {
  Reading best{curve.rbegin()->second, curve.rbegin()->first};
  bool found = false;
  for (const auto& [step, value] : curve) {
    if (!std::isfinite(value)) continue;
    const bool better = direction == Direction::maximise ? value > best.value : value < best.value;
    if (!found || better) best = {value, step};
    found = true;
  }
  return best;
}

Reading mean_of_last(const std::map<std::int64_t, double>& curve, std::int64_t k) {
  const std::size_t count = std::min(curve.size(), static_cast<std::size_t>(k));
  long double sum = 0;
  auto point = curve.rbegin();
  for (std::size_t i = 0; i < count; ++i, ++point) sum += static_cast<long double>(point->second);
  Reading reading{static_cast<double>(sum / static_cast<long double>(count)), curve.rbegin()->first};
  reading.too_few = count < static_cast<std::size_t>(k);
  return reading;
}

/// Over all slices is what was measured so, or what the only slice has; -1 when there are several.
std::int64_t only_slice(const std::vector<results::EvalPoint>& evals, const Series& series) {
  std::int64_t slice = -1;
  for (const results::EvalPoint& point : evals) {
    if (point.metric != series.metric || point.split != series.split) continue;
    if (point.slice < 0 || (slice >= 0 && point.slice != slice)) return -1;
    slice = point.slice;
  }
  return slice;
}

}  // namespace

const char* to_text(Direction direction) { return direction == Direction::minimise ? "minimise" : "maximise"; }

std::optional<Direction> direction_of(const std::string& metric) {
  if (ends_with_word(metric, "accuracy")) return Direction::maximise;
  if (ends_with_word(metric, "loss") || ends_with_word(metric, "perplexity") || metric == "bits_per_byte" ||
      metric == "steps_to_solve") {
    return Direction::minimise;
  }
  return std::nullopt;
}

Scale scale_of(const std::string& metric) { return ends_with_word(metric, "perplexity") ? Scale::logarithmic : Scale::linear; }

Bounds bounds_of(const std::string& metric) {
  if (ends_with_word(metric, "accuracy")) return {0.0, 1.0};
  Bounds bounds;
  bounds.low = ends_with_word(metric, "perplexity") ? 1.0 : 0.0;
  return bounds;
}

std::string slice_to_text(std::int64_t slice) { return slice < 0 ? "all" : std::to_string(slice); }

std::string to_text(const Series& series) {
  const std::string name = series.split + "." + series.metric;
  return series.slice < 0 ? name : name + "@" + std::to_string(series.slice);
}

std::string described(const Series& series) {
  return to_text(series) + (series.slice < 0 ? " over all lengths" : "");
}

std::string to_text(const At& at) {
  switch (at.rule) {
    case At::Rule::final:
      return "final";
    case At::Rule::best:
      return "best";
    case At::Rule::mean_last:
      return "mean_last_" + std::to_string(at.k);
  }
  return "";
}

std::optional<Reading> read_metric(const std::vector<results::EvalPoint>& evals, const Series& series, const At& at,
                                   Direction direction) {
  std::map<std::int64_t, double> curve;
  const std::int64_t slice = series.slice < 0 ? only_slice(evals, series) : series.slice;
  for (const results::EvalPoint& point : evals) {
    if (point.slice == slice && point.metric == series.metric && point.split == series.split) {
      curve[point.step] = point.value;
    }
  }
  if (curve.empty()) return std::nullopt;
  switch (at.rule) {
    case At::Rule::final:
      break;
    case At::Rule::best:
      return best_of(curve, direction);
    case At::Rule::mean_last:
      return mean_of_last(curve, at.k);
  }
  return Reading{curve.rbegin()->second, curve.rbegin()->first};
}

}  // namespace phasor::analysis
