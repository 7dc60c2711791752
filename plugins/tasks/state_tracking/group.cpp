#include "plugins/tasks/state_tracking/group.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string_view>

#include "core/base/error.h"

namespace phasor::state_tracking {

namespace {

/// n!, or more than max_order.
std::int64_t factorial(std::int64_t n) {
  std::int64_t product = 1;
  for (std::int64_t i = 2; i <= n && product <= 2 * Group::max_order; ++i) product *= i;
  return product;
}

struct Permutation {
  std::vector<std::uint8_t> points;  // one-line form
  bool even = true;
};

/// The permutation of a lexicographic rank: the digits of the rank to falling bases say which of the points that are
/// left comes next; each digit counts the inversions its point is in with later ones.
Permutation unrank(std::int64_t rank, std::int64_t n) {
  std::vector<std::uint8_t> left(static_cast<std::size_t>(n));
  std::iota(left.begin(), left.end(), std::uint8_t{0});
  Permutation out;
  for (std::int64_t places = n; places > 0; --places) {
    const std::int64_t digit = rank / factorial(places - 1);
    rank %= factorial(places - 1);
    out.points.push_back(left[static_cast<std::size_t>(digit)]);
    left.erase(left.begin() + digit);
    out.even = out.even == (digit % 2 == 0);
  }
  return out;
}

/// The number in "S12", or 0 when it is none. One that is too long counts as the largest.
std::int64_t parse_number(std::string_view digits) {
  const bool all_digits = std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (digits.empty() || !all_digits || digits.front() == '0') return 0;
  if (digits.size() > 6) return 999999;
  std::int64_t number = 0;
  for (const char c : digits) number = 10 * number + (c - '0');
  return number;
}

std::string too_large(const std::string& name) {
  return "group \"" + name + "\": found more than " + std::to_string(Group::max_order) +
         " elements, expected at most " + std::to_string(Group::max_order) +
         " (S7), since each is a class and a row of the embedding; choose a smaller group";
}

}  // namespace

std::int64_t Group::Factor::product(std::int64_t a, std::int64_t b) const {
  if (family == 'Z') return (a + b) % n;
  const auto& first = permutations[static_cast<std::size_t>(b)];
  const auto& then = permutations[static_cast<std::size_t>(a)];
  // Lexicographic rank in S_n: at each place, how many of the points that are left are smaller. Even permutations are
  // every other one (a pair differs by swapping the last two points), so their rank in A_n is half of it.
  const auto points = static_cast<std::size_t>(n);
  std::int64_t rank = 0;
  for (std::size_t k = 0; k < points; ++k) {
    std::int64_t smaller = 0;
    for (std::size_t later = k + 1; later < points; ++later) smaller += then[first[later]] < then[first[k]] ? 1 : 0;
    rank = rank * static_cast<std::int64_t>(points - k) + smaller;
  }
  return family == 'A' ? rank / 2 : rank;
}

std::string Group::parse_factor(const std::string& text, Factor& factor) {
  factor.n = text.empty() ? 0 : parse_number(std::string_view(text).substr(1));
  if (factor.n == 0 || (text[0] != 'Z' && text[0] != 'S' && text[0] != 'A')) return "unknown";
  factor.family = text[0];
  factor.order = factor.family == 'Z' ? factor.n : factorial(factor.n);
  if (factor.family == 'A' && factor.n > 1) factor.order /= 2;
  if (factor.order < 2) return "trivial";
  return factor.order > max_order ? "large" : "";
}

Group::Parsed Group::parse(const std::string& name) {
  Parsed parsed;
  constexpr std::string_view times = "_x_";
  std::int64_t order = 1;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find(times, at), name.size());
    const std::string part = name.substr(at, end - at);
    Factor factor;
    const std::string problem = parse_factor(part, factor);
    if (problem == "unknown") {
      parsed.problem = "group \"" + name +
                       "\": expected Zn (cyclic), Sn (all permutations) or An (the even ones) with a number n, or a " +
                       "product such as S2_x_Z3";
      return parsed;
    }
    if (problem == "trivial") {
      parsed.problem = "group \"" + name + "\": found that " + part +
                       " has one element only, expected something to track; the smallest are Z2, S2 and A3";
      return parsed;
    }
    if (problem == "large" || order * factor.order > max_order) {
      parsed.problem = too_large(name);
      return parsed;
    }
    order *= factor.order;
    parsed.factors.push_back(std::move(factor));
    if (end == name.size()) break;
    at = end + times.size();
  }
  return parsed;
}

std::optional<std::string> Group::refuses(const std::string& name) {
  std::string problem = parse(name).problem;
  if (problem.empty()) return std::nullopt;
  return problem;
}

Group::Group(const std::string& name) : name_(name) {
  Parsed parsed = parse(name);
  if (!parsed.problem.empty()) throw UserError(parsed.problem);
  factors_ = std::move(parsed.factors);
  for (Factor& factor : factors_) {
    order_ *= factor.order;
    if (factor.family == 'Z') continue;
    for (std::int64_t rank = 0; rank < factorial(factor.n); ++rank) {
      Permutation permutation = unrank(rank, factor.n);
      if (factor.family == 'S' || permutation.even) factor.permutations.push_back(std::move(permutation.points));
    }
    PHASOR_CHECK(static_cast<std::int64_t>(factor.permutations.size()) == factor.order, "elements of " + name);
  }
}

std::int64_t Group::product(std::int64_t a, std::int64_t b) const {
  PHASOR_CHECK(a >= 0 && a < order_ && b >= 0 && b < order_, "an element of " + name_);
  std::int64_t index = 0, left = order_;
  for (const Factor& factor : factors_) {
    left /= factor.order;
    index = index * factor.order + factor.product(a / left % factor.order, b / left % factor.order);
  }
  return index;
}

}  // namespace phasor::state_tracking
