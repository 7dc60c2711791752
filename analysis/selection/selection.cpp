#include "analysis/selection/selection.h"

#include <algorithm>
#include <cmath>

namespace phasor::analysis {
namespace {

bool equal(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max({1.0, std::abs(a), std::abs(b)}); }

double best_of(const std::vector<double>& scores, Direction direction) {
  return direction == Direction::maximise ? *std::max_element(scores.begin(), scores.end())
                                          : *std::min_element(scores.begin(), scores.end());
}

/// Keeps those whose tie score number `which` is best. One without that score loses to one that has it.
std::vector<std::size_t> break_tie(const std::vector<std::size_t>& tied, const std::vector<Contestant>& contestants,
                                   std::size_t which, Direction direction) {
  std::vector<double> scores;
  for (const std::size_t i : tied) {
    if (const double score = contestants[i].tie_scores[which]; std::isfinite(score)) scores.push_back(score);
  }
  if (scores.empty()) return tied;
  const double best = best_of(scores, direction);
  std::vector<std::size_t> kept;
  for (const std::size_t i : tied) {
    const double score = contestants[i].tie_scores[which];
    if (std::isfinite(score) && equal(score, best)) kept.push_back(i);
  }
  return kept;
}

}  // namespace

Counts& Counts::operator+=(const Counts& other) {
  expected += other.expected;
  finite += other.finite;
  diverged += other.diverged;
  failed += other.failed;
  missing += other.missing;
  return *this;
}

Choice choose(const std::vector<Contestant>& contestants, Direction direction,
              const std::vector<Direction>& tie_directions) {
  std::vector<double> scores;
  for (const Contestant& contestant : contestants) {
    if (contestant.whole && std::isfinite(contestant.score)) scores.push_back(contestant.score);
  }
  if (scores.empty()) return {};
  const double best = best_of(scores, direction);

  std::vector<std::size_t> tied;
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    const Contestant& contestant = contestants[i];
    if (contestant.whole && std::isfinite(contestant.score) && equal(contestant.score, best)) tied.push_back(i);
  }
  Choice choice;
  choice.tied = static_cast<std::int64_t>(tied.size());
  for (std::size_t which = 0; which < tie_directions.size(); ++which) {
    tied = break_tie(tied, contestants, which, tie_directions[which]);
  }
  choice.chosen = *std::min_element(tied.begin(), tied.end(), [&](std::size_t a, std::size_t b) {
    return contestants[a].order < contestants[b].order;
  });
  return choice;
}

}  // namespace phasor::analysis
