#include "analysis/selection/paired.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/base/philox.h"

namespace phasor::analysis {
namespace {

constexpr std::size_t every_sign = 30, every_draw = 8;
constexpr std::uint64_t random_signs = 9999, random_draws = 10000;

/// The sums of all choices of signs.
std::vector<double> signed_sums(std::span<const double> values) {
  std::vector<double> sums = {0.0};
  for (const double value : values) {
    const std::size_t count = sums.size();
    for (std::size_t i = 0; i < count; ++i) {
      sums.push_back(sums[i] - value);
      sums[i] += value;
    }
  }
  return sums;
}

/// How many choices of signs have a sum of at least `least`: each sum of the first half wants so much from the second.
std::int64_t count_sums(std::span<const double> values, double least) {
  const std::size_t half = values.size() / 2;
  std::vector<double> second = signed_sums(values.subspan(half));
  std::sort(second.begin(), second.end());
  std::int64_t count = 0;
  for (const double first : signed_sums(values.first(half))) {
    count += second.end() - std::lower_bound(second.begin(), second.end(), least - first);
  }
  return count;
}

/// The same of random choices.
std::int64_t count_random_sums(std::span<const double> values, double least) {
  const RandomStream stream(0, Purpose::statistics, values.size());
  std::int64_t count = 0;
  std::uint64_t next = 0;
  std::uint32_t signs = 0;  // 32 of them at a time
  for (std::uint64_t i = 0; i < random_signs; ++i) {
    double sum = 0.0;
    for (const double value : values) {
      signs = next % 32 == 0 ? stream.bits32(next / 32) : signs >> 1;
      ++next;
      sum += (signs & 1U) != 0 ? value : -value;
    }
    if (std::abs(sum) >= least) ++count;
  }
  return count;
}

}  // namespace

double sign_flip(const std::vector<double>& differences) {
  double sum = 0.0, size = 0.0;
  for (const double difference : differences) {
    sum += difference;
    size += std::abs(difference);
  }
  // Sums that are equal but for rounding are equal; half of the choices are the others' opposites.
  const double least = std::abs(sum) - 1e-12 * size;
  if (least <= 0.0) return 1.0;
  if (differences.size() > every_sign) {
    return static_cast<double>(1 + count_random_sums(differences, least)) / static_cast<double>(1 + random_signs);
  }
  return std::ldexp(static_cast<double>(count_sums(differences, least)), 1 - static_cast<int>(differences.size()));
}

double smallest_sign_flip(std::int64_t n) {
  PHASOR_CHECK(n > 0, "a test of no differences");
  if (n > static_cast<std::int64_t>(every_sign)) return 1.0 / static_cast<double>(1 + random_signs);
  return std::ldexp(1.0, 1 - static_cast<int>(n));
}

std::vector<double> holm(const std::vector<double>& p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> corrected(p.size());
  double most = 0.0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    most = std::max(most, std::min(1.0, static_cast<double>(p.size() - i) * p[order[i]]));
    corrected[order[i]] = most;
  }
  return corrected;
}

Bootstrap::Bootstrap(std::size_t n) : n_(n) {
  PHASOR_CHECK(n > 0, "a bootstrap of nothing");
  std::vector<std::uint8_t> counts(n, 0);
  if (n <= every_draw) {
    add_every_draw(counts, 0, n, 1.0);
    return;
  }
  const RandomStream stream(1, Purpose::statistics, n);
  counts_.assign(random_draws * n, 0);
  for (std::uint64_t draw = 0; draw < random_draws; ++draw) {
    for (std::uint64_t i = 0; i < n; ++i) {
      std::uint8_t& count = counts_[draw * n + stream.below(draw * n + i, n)];
      if (count < 255) ++count;  // never in practice; a byte keeps the table in the cache
    }
  }
  probabilities_.assign(random_draws, 1.0 / static_cast<double>(random_draws));
}

/// Multinomial: of `left` draws, k take the difference at `at` with the probability binomial(left, k) / n^k, and so on.
void Bootstrap::add_every_draw(std::vector<std::uint8_t>& counts, std::size_t at, std::size_t left, double probability) {
  const double share = 1.0 / static_cast<double>(n_);
  if (at + 1 == n_) {
    counts[at] = static_cast<std::uint8_t>(left);
    counts_.insert(counts_.end(), counts.begin(), counts.end());
    probabilities_.push_back(probability * std::pow(share, static_cast<double>(left)));
    return;
  }
  double ways = 1.0;  // binomial(left, k) / n^k
  for (std::size_t k = 0; k <= left; ++k) {
    counts[at] = static_cast<std::uint8_t>(k);
    add_every_draw(counts, at + 1, left - k, probability * ways);
    ways *= static_cast<double>(left - k) / static_cast<double>(k + 1) * share;
  }
}

Interval Bootstrap::interval(const std::vector<double>& differences) const {
  PHASOR_CHECK(differences.size() == n_, "a bootstrap of another number of differences");
  std::vector<std::pair<double, double>> means;  // and their probabilities
  means.reserve(probabilities_.size());
  for (std::size_t draw = 0; draw < probabilities_.size(); ++draw) {
    double sum = 0.0;
    for (std::size_t i = 0; i < n_; ++i) sum += static_cast<double>(counts_[draw * n_ + i]) * differences[i];
    means.emplace_back(sum / static_cast<double>(n_), probabilities_[draw]);
  }
  std::sort(means.begin(), means.end());
  // The outermost means that leave no more than 2.5 % beyond them; 1e-12 for the rounding of the sum.
  constexpr double tail = 0.025 - 1e-12;
  const auto end_of = [](auto first, auto last) {
    double sum = 0.0;
    auto at = first;
    for (; at != last; ++at) {
      sum += at->second;
      if (sum >= tail) break;
    }
    return at->first;
  };
  return {end_of(means.begin(), means.end()), end_of(means.rbegin(), means.rend())};
}

}  // namespace phasor::analysis
