// Answers a line of numbers with the statistics of it, in full digits, for another program to compare (statistics.py).

#include <fmt/format.h>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>

#include "analysis/selection/paired.h"
#include "analysis/selection/statistics.h"

namespace phasor::analysis {
namespace {

std::string answer(const std::string& what, const std::vector<double>& values) {
  if (what == "describe") {
    const Statistics s = describe(values);
    return fmt::format("{} {} {} {} {} {}", *s.mean, *s.sd, *s.half_width, *s.median, *s.min, *s.max);
  }
  if (what == "logarithmic") {
    const Statistics s = describe(values, Scale::logarithmic);
    return fmt::format("{} {} {} {} {}", *s.mean, *s.sd, *s.median, s.interval->low, s.interval->high);
  }
  if (what == "wilson") {  // solved, of
    const Interval share = wilson(values[0] / values[1], static_cast<std::int64_t>(values[1]));
    return fmt::format("{} {}", share.low, share.high);
  }
  if (what == "sign_flip") return fmt::format("{}", sign_flip(values));
  if (what == "bootstrap") {
    const Interval interval = Bootstrap(values.size()).interval(values);
    return fmt::format("{} {}", interval.low, interval.high);
  }
  if (what == "holm") return fmt::format("{}", fmt::join(holm(values), " "));
  return "unknown: " + what;
}

}  // namespace
}  // namespace phasor::analysis

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    const std::vector<double> values{std::istream_iterator<double>(words), {}};
    std::cout << phasor::analysis::answer(what, values) << "\n";
  }
}
