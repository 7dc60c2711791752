#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <numbers>

#include "analysis/theory/theory.h"

namespace phasor::analysis::theory {

namespace {

constexpr int channels = 64;
constexpr std::array<std::size_t, 6> shown = {0, 1, 2, 8, 16, 32};

/// Half a unit of the last digit of a number written with so many digits that count.
double half_unit(double value, int digits) {
  if (value == 0.0) return 0.0;
  return 0.51 * std::pow(10.0, std::floor(std::log10(value)) + 1.0 - digits);
}

void add_spectrum(std::vector<Check>& checks, const std::string& name, const std::vector<double>& values,
                  const std::array<double, 6>& expected, const std::string& note) {
  for (std::size_t i = 0; i < shown.size(); ++i)
    checks.push_back({"temperatures", fmt::format("{}, channel {}", name, shown[i]), expected[i], values[shown[i]],
                      std::min(5.1e-4, half_unit(expected[i], 2)), i == 0 ? note : ""});
}

/// sqrt((1 - cos phi) / (1 + cos phi)) for phi from 0 to theta pi, divided by the largest, times the highest; smallest
/// first.
std::vector<double> rfa_temperatures(int count, double theta, double highest) {
  std::vector<double> values;
  for (int j = 0; j < count; ++j) {
    const double phi = theta * std::numbers::pi * j / (count - 1);
    values.push_back(std::sqrt((1.0 - std::cos(phi)) / (1.0 + std::cos(phi))));
  }
  for (double& value : values)
    value *=
        highest / std::sqrt((1.0 - std::cos(theta * std::numbers::pi)) / (1.0 + std::cos(theta * std::numbers::pi)));
  return values;
}

}  // namespace

std::vector<double> rope_temperatures(int count, double base) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(std::pow(base, -static_cast<double>(i) / count));
  return values;
}

std::vector<double> tangent_temperatures(int count, double epsilon) {
  std::vector<double> values;
  for (int j = count - 1; j >= 0; --j)
    values.push_back(std::tan(j * (1.0 - epsilon) * std::numbers::pi / (count - 1) / 2.0));
  const double largest = values.front();
  for (double& value : values) value /= largest;
  return values;
}

std::vector<Check> temperatures() {
  std::vector<Check> checks;
  constexpr std::array<double, 8> rope = {1.0, .1939, .03761, .007293, .001414, 2.74e-4, 5.32e-5, 1.03e-5};
  const std::vector<double> found = rope_temperatures(8, 5e5);
  for (std::size_t i = 0; i < rope.size(); ++i)
    checks.push_back({"temperatures", fmt::format("rope, head_dim 16, base 5e5, plane {}", i), rope[i], found[i],
                      half_unit(rope[i], i < 5 ? 4 : 3)});
  const std::vector<double> rfa = rfa_temperatures(16, 0.9999, 0.25);
  checks.push_back({"temperatures", "rfa, head_dim 32, theta .9999, highest .25: plane 0", 0.0, rfa[0], 0.0});
  checks.push_back({"temperatures", "the same, plane 1", 4.1e-6, rfa[1], half_unit(4.1e-6, 2)});
  checks.push_back({"temperatures", "the same, plane 14", 3.7e-4, rfa[14], half_unit(3.7e-4, 2)});
  checks.push_back({"temperatures", "the same, plane 15", 0.25, rfa[15], 1e-12,
                    "15 of 16 planes turn by less than 4e-4 of a radian per unit"});
  struct Row {
    double epsilon;
    std::array<double, 6> tangent, rope;
  };
  constexpr std::array<Row, 3> rows = {
      Row{0.1, {1, .873, .774, .453, .279, .132}, {1, .965, .931, .750, .562, .316}},
      Row{0.01, {1, .389, .241, .073, .036, .015}, {1, .931, .866, .562, .316, .1}},
      Row{1e-4, {1, .0063, .0031, .00078, .00037, .00015}, {1, .866, .750, .316, .1, .01}}};
  for (const Row& row : rows) {
    const bool near = row.epsilon == 0.1;
    add_spectrum(checks, fmt::format("tangent, epsilon {}", row.epsilon), tangent_temperatures(channels, row.epsilon),
                 row.tangent,
                 near ? "\"extremely similar, slightly faster decay\" holds at this epsilon only" : "far from RoPE's");
    add_spectrum(checks, fmt::format("rope, base 1/{}", row.epsilon), rope_temperatures(channels, 1.0 / row.epsilon),
                 row.rope, "");
  }
  return checks;
}

}  // namespace phasor::analysis::theory
