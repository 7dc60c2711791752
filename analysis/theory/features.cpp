#include <array>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <numbers>

#include "analysis/theory/theory.h"

namespace phasor::analysis::theory {

namespace {

constexpr double e = std::numbers::e;

/// Mean of f over a normal variable of variance 1. The trapezoid rule converges faster than any power of its step here.
double normal_mean(const std::function<double(double)>& f) {
  constexpr double reach = 12.0, step = 1.0 / 64.0;
  double sum = 0.0;
  for (double x = -reach; x <= reach; x += step) sum += f(x) * std::exp(-x * x / 2.0);
  return sum * step / std::sqrt(2.0 * std::numbers::pi);
}

/// For unit q and k with q.k = xi, the estimate of one feature is e cos(w.(q -+ k)), and w.(q -+ k) is normal with
/// variance s^2 |q -+ k|^2 = 2 s^2 (1 -+ xi). `sign` is -1 with the conjugate, +1 without.
double mean_of_feature(double variance, double xi, double sign = -1.0) {
  const double deviation = std::sqrt(2.0 * variance * (1.0 + sign * xi));
  return normal_mean([&](double x) { return e * std::cos(deviation * x); });
}

double variance_of_feature(double variance, double xi) {
  const double deviation = std::sqrt(2.0 * variance * (1.0 - xi)), mean = mean_of_feature(variance, xi);
  return normal_mean([&](double x) { return std::pow(e * std::cos(deviation * x) - mean, 2.0); });
}

/// Mean squared error of `count` features as an estimate of exp(xi), in closed form (Theorem 1, for the conjugated
/// kernel).
double feature_error(double count, double variance, double xi) {
  const double a = variance * (1.0 - xi);
  return e * e / (2.0 * count) * std::pow(1.0 - std::exp(-2.0 * a), 2.0) +
         std::pow(std::exp(1.0 - a) - std::exp(xi), 2.0);
}

/// Where f is lowest between two ends, by golden sections; f falls, then rises.
double lowest(const std::function<double(double)>& f, double low, double high) {
  const double ratio = (std::sqrt(5.0) - 1.0) / 2.0;
  while (high - low > 1e-9) {
    const double left = high - ratio * (high - low), right = low + ratio * (high - low);
    (f(left) < f(right) ? high : low) = f(left) < f(right) ? right : left;
  }
  return (low + high) / 2.0;
}

/// Mean of a positive feature exp(w.q - |q|^2 / 2) exp(w.k - |k|^2 / 2): w.(q + k) is normal with variance 2 s^2 (1 +
/// xi).
double mean_of_positive_feature(double variance, double xi) {
  const double deviation = std::sqrt(2.0 * variance * (1.0 + xi));
  return normal_mean([&](double x) { return std::exp(deviation * x - 1.0); });
}

void best_variances(std::vector<Check>& checks) {
  struct Row {
    double xi;
    std::array<double, 7> expected;
  };
  constexpr std::array<int, 7> counts = {1, 2, 4, 8, 16, 64, 256};
  constexpr std::array<Row, 3> rows = {Row{0.0, {0.333, 0.580, 0.780, 0.890, 0.945, 0.986, 0.997}},
                                       Row{0.5, {0.333, 0.535, 0.724, 0.851, 0.923, 0.980, 0.995}},
                                       Row{0.9, {0.333, 0.506, 0.678, 0.811, 0.897, 0.972, 0.993}}};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const double best = lowest([&](double variance) { return feature_error(counts[i], variance, row.xi); }, 0.0, 2.0);
      checks.push_back({"Theorem 1, finite D", fmt::format("best variance, D {}, q.k {}", counts[i], row.xi),
                        row.expected[i], best, 5.1e-4,
                        i == 0 ? "below 1 for few features only, and hardly a matter of the angle" : ""});
    }
  }
}

}  // namespace

std::vector<Check> random_features() {
  constexpr double xi = 0.5, third = 1.0 / 3.0;
  std::vector<Check> checks = {
      {"random features", "mean, conjugated, q.k 0.5, variance 1", std::exp(xi), mean_of_feature(1.0, xi), 1e-12,
       "exp(q.k): what softmax needs"},
      {"random features", "mean, not conjugated", std::exp(-xi), mean_of_feature(1.0, xi, 1.0), 1e-12,
       "equation 8 as printed lacks the conjugate and estimates exp(-q.k)"},
      {"Theorem 1", "variance of a feature, variance 1", 1.4762, variance_of_feature(1.0, xi), 5.1e-5},
      {"Theorem 1", "variance of a feature, variance 1/3", 0.2969, variance_of_feature(third, xi), 5.1e-5},
      {"Theorem 1", "mean at the paper's variance (1 - q.k) / (1 + q.k) = 1/3", 2.3010, mean_of_feature(third, xi),
       5.1e-5, "the target is 1.6487: the variance of the theorem is not that of the conjugated kernel"},
      {"Theorem 1", "the same, not conjugated", 1.6487, mean_of_feature(third, xi, 1.0), 5.1e-5,
       "here the theorem is right"},
      {"Theorem 1", "error of 16 features, variance 1/3", 0.444, feature_error(16.0, third, xi), 5.1e-4},
      {"Theorem 1", "error of 16 features, variance 1", 0.092, feature_error(16.0, 1.0, xi), 5.1e-4,
       "a fifth of the error of the paper's choice"},
      {"Theorem 1", "variance of least error, D large", 1.0,
       lowest([&](double v) { return feature_error(1e9, v, xi); }, 0.0, 2.0), 1e-6, "for every angle"},
  };
  best_variances(checks);
  const double best =
      lowest([&](double v) { return std::pow(mean_of_positive_feature(v, xi) - std::exp(xi), 2.0); }, 0.2, 2.0);
  checks.push_back({"Theorem 2", "positive features: variance of least error, D large", 1.0, best, 1e-6, "confirmed"});
  checks.push_back({"Theorem 2", "positive features: mean, variance 1/2", std::exp(0.5 * (1.0 + xi) - 1.0),
                    mean_of_positive_feature(0.5, xi), 1e-12});
  return checks;
}

}  // namespace phasor::analysis::theory
