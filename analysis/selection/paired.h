#pragma once

#include <cstdint>
#include <vector>

#include "analysis/selection/statistics.h"

namespace phasor::analysis {

// Differences between two rows of a table, one for each seed that both have.

/// p of the hypothesis that a difference is as likely as its opposite, two-sided: the share of all 2^n choices of signs whose sum
/// is at least as far from 0 as the one found (Fisher 1935). Every choice is counted up to 30 differences; beyond them 9,999
/// random ones, of a fixed seed, and the one found. 1 when there are no differences.
double sign_flip(const std::vector<double>& differences);

/// The least that `sign_flip` can give for n differences: 2^(1 - n), so .25 for three; 1e-4 beyond 30.
double smallest_sign_flip(std::int64_t n);

/// Corrected for the size of the family: p values that hold together (Holm 1979), in the order given.
std::vector<double> holm(const std::vector<double>& p);

/// 95 % percentile intervals of the mean of n differences, drawn again with replacement: every draw up to 8, with its
/// probability; beyond them 10,000 random ones of a fixed seed (Efron 1979). So the same differences always have the same
/// interval. Of three or fewer it is their range, of eight it covers about .89 in place of .95.
class Bootstrap {
 public:
  explicit Bootstrap(std::size_t n);
  Interval interval(const std::vector<double>& differences) const;  // n of them

 private:
  void add_every_draw(std::vector<std::uint8_t>& counts, std::size_t at, std::size_t left, double probability);

  std::size_t n_;
  std::vector<std::uint8_t> counts_;  // [draw, difference]: how often it is drawn
  std::vector<double> probabilities_;  // of a draw
};

}  // namespace phasor::analysis
