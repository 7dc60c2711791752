#include "analysis/figures/theory.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "analysis/charts/chart.h"
#include "analysis/text.h"
#include "analysis/theory/theory.h"

namespace phasor::analysis {
namespace {

Figure temperature_figure() {
  constexpr int pairs = 64;
  const std::vector<std::pair<std::string, std::vector<double>>> spectra = {
      {"RoPE, e = 0.1", theory::rope_temperatures(pairs, 10.0)},
      {"RoPE, e = 10⁻⁴", theory::rope_temperatures(pairs, 1e4)},
      {"tan, e = 0.1", theory::tangent_temperatures(pairs, 0.1)},
      {"tan, e = 0.01", theory::tangent_temperatures(pairs, 0.01)},
      {"tan, e = 10⁻⁴", theory::tangent_temperatures(pairs, 1e-4)}};
  Chart chart;
  chart.id = "figure-temperatures";
  chart.x = {.label = "channel pair of 64, the fastest first", .low = 0.0, .high = 63.0, .whole = true};
  chart.y = {.label = "temperature (radians per unit)", .kind = AxisKind::log10, .low = 1e-6, .high = 1.2};
  ChartPanel panel;
  for (const auto& [name, temperatures] : spectra) {
    ChartLine line{.series = chart.series.size(), .markers = false};
    for (std::size_t j = 0; j < temperatures.size(); ++j) {
      line.points.push_back({static_cast<double>(j), temperatures[j],
                             name + ", pair " + std::to_string(j) + ": " + digits(temperatures[j])});
    }
    chart.series.push_back(name);
    panel.lines.push_back(std::move(line));
  }
  chart.panels = {std::move(panel)};
  return {"temperatures", "Temperatures",
          "Temperatures of 64 channel pairs: RoPE's e^(j/64), and tan(phi/2) with phi evenly spread up to (1 - e) pi, "
          "over its largest. At e = 0.1 the two "
          "are alike; at e = 10⁻⁴ all but one pair of the tan spectrum turn below 0.01. Its slowest pair does not turn "
          "at all and is not drawn.",
          svg(chart)};
}

Figure leakage_figure() {
  constexpr int samples = 200;
  constexpr double rate = 100.0, sine = 10.25, highest = 30.0, floor = -100.0;
  using theory::Window;
  const std::vector<std::pair<std::string, std::vector<double>>> windows = {
      {"rectangular", theory::window(Window::rectangular, samples)},
      {"Hann", theory::window(Window::hann, samples)},
      {"exponential, 0.1", theory::window(Window::causal_exponential, samples, 0.1)},
      {"both sides, 0.1", theory::window(Window::two_sided_exponential, samples, 0.1)}};
  Chart chart;
  chart.id = "figure-leakage";
  chart.x = {.label = "frequency (Hz)", .low = 0.0, .high = highest};
  chart.y = {.label = "energy below the peak (dB)", .low = floor, .high = 0.0};
  ChartPanel panel;
  panel.guides = {{sine, "10.25 Hz"}};
  for (const auto& [name, window] : windows) {
    const theory::Spectrum found = theory::spectrum(window, sine, rate, 4);
    const double top = *std::max_element(found.energy.begin(), found.energy.end());
    ChartLine line{.series = chart.series.size(), .markers = false};
    for (std::size_t k = 0; k < found.energy.size() && found.frequency[k] <= highest; ++k) {
      const double level = std::max(floor, 10.0 * std::log10(found.energy[k] / top));
      line.points.push_back(
          {found.frequency[k], level, name + ", " + fixed(found.frequency[k], 2) + " Hz: " + fixed(level, 1) + " dB"});
    }
    chart.series.push_back(name);
    panel.lines.push_back(std::move(line));
  }
  chart.panels = {std::move(panel)};
  return {
      "leakage", "Leakage of windows",
      "Energy spectrum of two seconds of a 10.25 Hz sine at 100 Hz under four windows, each against its own peak. The "
      "exponential window has weight 1 at the "
      "newest sample and 0.1 at the oldest: it smooths the ripple of the rectangular one and leaves its far energy.",
      svg(chart)};
}

}  // namespace

std::vector<Figure> theory_figures() { return {temperature_figure(), leakage_figure()}; }

}  // namespace phasor::analysis
