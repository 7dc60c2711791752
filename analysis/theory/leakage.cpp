#include <cmath>
#include <complex>
#include <fmt/format.h>
#include <numbers>

#include "analysis/theory/theory.h"

namespace phasor::analysis::theory {

namespace {

constexpr double pi = std::numbers::pi, rate = 100.0, sine = 10.25;  // Hz; half a bin between two bins
constexpr int samples = 200;                                         // two seconds

/// Share of the energy farther than 2 Hz from the sine.
double far_energy(const std::vector<double>& window) {
  const Spectrum s = spectrum(window, sine, rate);
  double far = 0.0;
  for (std::size_t k = 0; k < s.energy.size(); ++k) {
    if (std::fabs(s.frequency[k] - sine) > 2.0) far += s.energy[k];
  }
  return far;
}

/// Highest side lobe of a window's own spectrum, relative to the main one, in decibel.
double first_side_lobe(const std::vector<double>& window) {
  constexpr int fine = 64;
  const auto gain = [&](int k) {
    std::complex<double> sum = 0.0;
    for (std::size_t t = 0; t < window.size(); ++t)
      sum += window[t] *
             std::polar(1.0, -2.0 * pi * k * static_cast<double>(t) / (static_cast<double>(window.size()) * fine));
    return std::abs(sum);
  };
  int k = 1;
  while (gain(k + 1) < gain(k)) ++k;  // down to the first zero
  double highest = 0.0;
  for (const int end = k + 2 * fine; k < end; ++k) highest = std::max(highest, gain(k));
  return 20.0 * std::log10(highest / gain(0));
}

/// Energy of a decay over T = 1 s, of unit energy, far from its frequency, relative to that of a rectangle: the mean
/// over whole periods of the ripple of |W(w)|^2 = (1 - 2 e^-a cos w + e^-2a) / (a^2 + w^2), a = decay x T.
double far_ratio(double decay) {
  const auto tail = [](double a) {
    const double whole = a == 0.0 ? 1.0 : (1.0 - std::exp(-2.0 * a)) / (2.0 * a), start = 2.0 * pi * 2000.0,
                 step = 2.0 * pi / 64.0;
    double sum = 0.0;
    for (int i = 0; i < 64 * 200; ++i) {
      const double w = start + i * step;
      sum += (1.0 - 2.0 * std::exp(-a) * std::cos(w) + std::exp(-2.0 * a)) / (a * a + w * w);
    }
    return sum / whole;
  };
  return tail(decay) / tail(0.0);
}

}  // namespace

std::vector<double> window(Window kind, int count, double edge) {
  std::vector<double> values;
  for (int t = 0; t < count; ++t) {
    const double at = static_cast<double>(t) / count;
    switch (kind) {
      case Window::rectangular:
        values.push_back(1.0);
        break;
      case Window::hann:
        values.push_back(0.5 - 0.5 * std::cos(2.0 * pi * at));
        break;
      case Window::causal_exponential:
        values.push_back(std::pow(edge, 1.0 - at));
        break;
      case Window::two_sided_exponential:
        values.push_back(std::pow(edge, std::fabs(2.0 * t / (count - 1) - 1.0)));
        break;
    }
  }
  return values;
}

Spectrum spectrum(const std::vector<double>& window, double frequency, double sampled, int pad) {
  const int size = static_cast<int>(window.size()) * pad;
  Spectrum result;
  double whole = 0.0;
  for (int k = 0; 2 * k <= size; ++k) {
    std::complex<double> sum = 0.0;
    for (std::size_t t = 0; t < window.size(); ++t) {
      const double x = std::sin(2.0 * pi * frequency * static_cast<double>(t) / sampled);
      sum += window[t] * x * std::polar(1.0, -2.0 * pi * k * static_cast<double>(t) / size);
    }
    result.frequency.push_back(sampled * k / size);
    result.energy.push_back(std::norm(sum));
    whole += result.energy.back();
  }
  for (double& energy : result.energy) energy /= whole;
  return result;
}

std::vector<Check> leakage() {
  std::vector<Check> checks = {
      {"leakage", "far energy, rectangular window", 4.95e-2, far_energy(window(Window::rectangular, samples)), 5.1e-5},
      {"leakage", "far energy, Hann window", 2.68e-5, far_energy(window(Window::hann, samples)), 5.1e-8},
      {"leakage", "first side lobe, rectangular, dB", -13.26, first_side_lobe(window(Window::rectangular, samples)),
       5.1e-3},
      {"leakage", "first side lobe, Hann, dB", -31.47, first_side_lobe(window(Window::hann, samples)), 5.1e-3},
  };
  struct Row {
    double oldest, expected;
  };
  for (const Row& row : {Row{0.9, 4.95e-2}, {0.5, 5.14e-2}, {0.1, 6.94e-2}, {0.01, 1.15e-1}, {0.001, 1.67e-1}}) {
    checks.push_back(
        {"leakage", fmt::format("far energy, forgetting to {} at the oldest sample", row.oldest), row.expected,
         far_energy(window(Window::causal_exponential, samples, row.oldest)), row.expected < 0.1 ? 5.1e-5 : 5.1e-4,
         row.oldest == 0.9 ? "forgetting does not suppress leakage: the jump at the newest sample stays" : ""});
  }
  checks.push_back({"leakage", "far energy, two-sided decay to 0.1", 5.8e-3,
                    far_energy(window(Window::two_sided_exponential, samples, 0.1)), 5.1e-5,
                    "this would help, but is not causal"});
  const double decay = std::log(10.0);
  checks.push_back({"leakage", "far energy of forgetting to 0.1 over the rectangle's, in the limit",
                    decay / std::tanh(decay), far_ratio(decay), 1e-3, "aT coth(aT), at least 1"});
  return checks;
}

}  // namespace phasor::analysis::theory
