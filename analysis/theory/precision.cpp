#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "analysis/theory/theory.h"

namespace phasor::analysis::theory {

namespace {

/// The nearest bfloat16, ties to even.
float to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7FFFu + (bits >> 16 & 1u)) & 0xFFFF0000u);
}

/// The first step of a stream of ones at which cos(phase) has not the sign (-1)^step; 0 when none of 4096 has.
template <class Add>
double first_wrong_sign(float increment, Add add) {
  float phase = 0.0f;
  for (int step = 1; step <= 4096; ++step) {
    phase = add(phase, increment);
    if ((std::cos(static_cast<double>(phase)) > 0.0) != (step % 2 == 0)) return step;
  }
  return 0.0;
}

double largest_clock_error() {
  double worst = 0.0;
  std::uint32_t state = 1;
  int ones = 0;
  for (int t = 0; t < 512; ++t) {
    state = state * 1664525u + 1013904223u;
    ones += static_cast<int>(state >> 31);
    worst = std::max(worst, std::fabs(std::cos(std::numbers::pi * ones) - (ones % 2 == 0 ? 1.0 : -1.0)));
  }
  return worst;
}

}  // namespace

std::vector<Check> parity_clock() {
  const auto in_f32 = [](float a, float b) { return a + b; };
  const auto in_bf16 = [](float a, float b) { return to_bf16(a + b); };
  const auto pi = static_cast<float>(std::numbers::pi);
  return {
      {"parity clock", "cos(pi sum b) against (-1)^(sum b), f64, 512 bits", 0.0, largest_clock_error(), 1e-12,
       "one write at the start and phases pi b_t solve parity"},
      {"parity clock", "pi in bf16", 3.140625, static_cast<double>(to_bf16(pi)), 0.0},
      {"parity clock", "first wrong sign, increment in bf16, sum in f32", 1624.0, first_wrong_sign(to_bf16(pi), in_f32),
       0.0},
      {"parity clock", "first wrong sign, increment and sum in bf16", 40.0, first_wrong_sign(to_bf16(pi), in_bf16), 0.0,
       "running phases are carried in double, or reduced"},
      {"parity clock", "first wrong sign in f32, 0 for none in 4096", 0.0, first_wrong_sign(pi, in_f32), 0.0},
  };
}

}  // namespace phasor::analysis::theory
