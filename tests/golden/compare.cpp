#include "tests/golden/compare.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace phasor::golden {

namespace {

double largest(const Numbers& numbers) {
  double top = 0.0;
  for (const double value : numbers.values) top = std::max(top, std::abs(value));
  return top;
}

std::string text_of(const std::vector<std::int64_t>& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

void compare_tensor(Verdict& verdict, const std::string& what, const Numbers& got, const Numbers& want, double bound) {
  if (got.dims != want.dims || got.values.size() != want.values.size()) {
    verdict.faults.push_back(fmt::format("{}: shape {}, expected {}", what, text_of(got.dims), text_of(want.dims)));
    return;
  }
  std::size_t place = 0;
  double worst = 0.0;
  bool good = true;
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    const double error = std::abs(got.values[i] - want.values[i]);
    if (error <= worst) continue;
    place = i;
    worst = error;
    if (error <= bound) continue;
    good = false;
    if (!std::isfinite(error)) break;
  }
  const double ratio = worst > 0.0 || std::isnan(worst) ? worst / bound : 0.0;
  verdict.worst = std::max(verdict.worst, std::isnan(ratio) ? INFINITY : ratio);
  if (good) return;
  verdict.faults.push_back(fmt::format("{}: element {} is {:.12g}, expected {:.12g} (error {:.3g}, admissible {:.3g})",
                                       what, place, got.values[place], want.values[place], worst, bound));
}

void compare_group(Verdict& verdict, const std::string& what, const Group& got, const Group& want, double tolerance) {
  double scale = 0.0;
  for (const auto& [name, numbers] : want) scale = std::max(scale, largest(numbers));
  for (const auto& [name, numbers] : want) {
    const auto found = got.find(name);
    if (found == got.end()) {
      verdict.faults.push_back(what + " " + name + ": not computed");
      continue;
    }
    const double bound = tolerance * std::max(largest(numbers), 1e-3 * scale);
    compare_tensor(verdict, what + " " + name, found->second, numbers, bound);
  }
  for (const auto& [name, numbers] : got)
    if (!want.contains(name)) verdict.faults.push_back(what + " " + name + ": computed, but the file has none");
}

}  // namespace

Tolerance tolerance_of(const GoldenFile& file, Dtype dtype) {
  if (dtype == Dtype::f64) return {1e-9, 1e-9};
  return {std::max(1e-5, 20.0 * file.single_outputs), std::max(1e-5, 20.0 * file.single_grads)};
}

Verdict compare(const GoldenFile& file, const Results& results, const Tolerance& tolerance) {
  Verdict verdict;
  verdict.faults = results.faults;
  compare_group(verdict, "output", results.outputs, file.outputs, tolerance.outputs);
  compare_group(verdict, "gradient of", results.grads, file.grads, tolerance.grads);
  if (!results.what.empty())
    for (std::string& fault : verdict.faults) fault = results.what + ": " + fault;
  return verdict;
}

}  // namespace phasor::golden
