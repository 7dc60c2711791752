#include "analysis/figures/spectra.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "analysis/charts/chart.h"
#include "analysis/text.h"
#include "analysis/writers/grid.h"
#include "core/spec/json.h"

namespace phasor::analysis {
namespace {

using results::LayerSpectra;
using results::Spectra;

constexpr std::size_t most_panels = 12;
constexpr int percents[] = {10, 50, 90};

/// Sizes from the largest on: as a quantile function, that two spectra can be laid over each other.
std::vector<double> sorted_sizes(const std::vector<double>& values) {
  std::vector<double> sizes;
  for (const double value : values) sizes.push_back(std::abs(value));
  std::sort(sizes.rbegin(), sizes.rend());
  return sizes;
}

/// The fastest pair, the slowest, and two between them, by the size of the temperature; equal ones in their order.
std::vector<std::size_t> drawn_pairs(const LayerSpectra& layer) {
  std::vector<std::size_t> order(layer.temperature.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return std::abs(layer.temperature[a]) > std::abs(layer.temperature[b]); });
  std::vector<std::size_t> drawn;
  for (std::size_t i = 0; i < 4; ++i)
    if (const std::size_t pair = order[(order.size() - 1) * i / 3]; std::find(drawn.begin(), drawn.end(), pair) == drawn.end()) drawn.push_back(pair);
  return drawn;
}

double angle_at(const LayerSpectra& layer, std::int64_t t, std::int64_t head, std::size_t pair) {
  return layer.angle[static_cast<std::size_t>((t * layer.heads + head) * layer.planes) + pair];
}

/// Of the channels of a head at a position; between neighbours linearly.
double quantile(const LayerSpectra::Gate& gate, std::int64_t t, std::int64_t head, int percent) {
  const auto begin = gate.value.begin() + (t * gate.heads + head) * gate.channels;
  std::vector<double> sorted(begin, begin + gate.channels);
  std::sort(sorted.begin(), sorted.end());
  const double at = static_cast<double>(gate.channels - 1) * percent / 100.0;
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::string spoken(const std::string& gate) {
  if (gate == "kept") return "kept of the state";
  return gate == "phase_gate" ? "phase gate" : "write gate";
}

std::string where(const Spectra& spectra) {
  return spectra.title + ", trial " + spectra.trial.substr(0, 8) + ", row " + std::to_string(spectra.row) + " of " + spectra.split + " at length " +
         std::to_string(spectra.length) + ".";
}

std::string left_out(std::size_t panels) {
  if (panels <= most_panels) return "";
  return " " + grouped(static_cast<std::int64_t>(panels - most_panels)) + " more panels are in the CSV alone.";
}

/// Layers without something, as a sentence; empty where all have it.
template <class Has>
std::string without(const Spectra& spectra, const std::string& what, Has has) {
  std::vector<std::string> layers;
  for (const LayerSpectra& layer : spectra.layers)
    if (!has(layer)) layers.push_back(std::to_string(layer.layer));
  return layers.empty() ? "" : " No " + what + " in layer " + join(layers, ", ") + ".";
}

void add_temperatures(const Spectra& spectra, std::vector<Figure>& figures) {
  Chart chart;
  chart.id = "figure-temperatures";
  std::size_t pairs = 1;
  for (const LayerSpectra& layer : spectra.layers) pairs = std::max(pairs, layer.temperature.size());
  chart.x = {.label = "pair of channels, the fastest first", .high = static_cast<double>(pairs - 1), .whole = true};
  chart.y = {.label = "temperature (radians per unit of phase)", .kind = AxisKind::log10};
  ChartPanel panel;
  std::size_t unmoved = 0, layers = 0, negative = 0;
  std::set<std::vector<double>> drawn;
  const auto add = [&](const std::string& name, const std::vector<double>& values) {
    ChartLine line{.series = chart.series.size()};
    const std::vector<double> sizes = sorted_sizes(values);
    for (std::size_t i = 0; i < sizes.size(); ++i)
      line.points.push_back({static_cast<double>(i), sizes[i], name + ", pair " + std::to_string(i) + ": " + digits(sizes[i])});
    chart.series.push_back(name);
    panel.lines.push_back(std::move(line));
  };
  for (const LayerSpectra& layer : spectra.layers)
    if (!layer.initial_temperature.empty() && drawn.insert(layer.initial_temperature).second)
      add(drawn.size() == 1 ? "before training" : "before training, layer " + std::to_string(layer.layer), layer.initial_temperature);
  for (const LayerSpectra& layer : spectra.layers) {
    if (layer.temperature.empty()) continue;
    ++layers;
    negative += static_cast<std::size_t>(std::count_if(layer.temperature.begin(), layer.temperature.end(), [](double t) { return t < 0.0; }));
    if (layer.temperature == layer.initial_temperature)
      ++unmoved;
    else
      add("layer " + std::to_string(layer.layer), layer.temperature);
  }
  if (layers == 0) return;
  chart.panels = {std::move(panel)};
  std::string caption = "Temperatures of the pairs of channels, sorted by size. " + where(spectra);
  if (unmoved == layers) caption += " They are fixed: after training they are what they were before.";
  if (unmoved > 0 && unmoved < layers) caption += " Layers that are not drawn are as before training.";
  if (negative > 0) caption += " " + counted(static_cast<std::int64_t>(negative), "negative one") + " by size.";
  caption += without(spectra, "temperatures", [](const LayerSpectra& layer) { return !layer.temperature.empty(); });
  figures.push_back({"temperatures", "Temperatures", caption, svg(chart)});
}

void add_phases(const Spectra& spectra, std::vector<Figure>& figures) {
  Chart chart;
  chart.id = "figure-phases";
  chart.x = {.label = "position", .high = static_cast<double>(spectra.time - 1), .whole = true};
  chart.y = {.label = "angle (radians)"};
  chart.series = {"fastest pair", "a third down", "two thirds down", "slowest pair"};
  std::size_t panels = 0;
  for (const LayerSpectra& layer : spectra.layers)
    for (std::int64_t head = 0; head < layer.heads; ++head) {
      if (++panels > most_panels) continue;
      ChartPanel panel{.title = "layer " + std::to_string(layer.layer) + (layer.heads > 1 ? ", head " + std::to_string(head) : "")};
      const std::vector<std::size_t> pairs = drawn_pairs(layer);
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        const std::size_t series = pairs.size() == 1 ? 0 : i * 3 / (pairs.size() - 1);
        ChartLine line{.series = series, .markers = false};
        for (std::int64_t t = 0; t < spectra.time; ++t) {
          const double angle = angle_at(layer, t, head, pairs[i]);
          line.points.push_back({static_cast<double>(t), angle, "pair " + std::to_string(pairs[i]) + ", position " + std::to_string(t) + ": " + digits(angle)});
        }
        panel.lines.push_back(std::move(line));
      }
      chart.panels.push_back(std::move(panel));
    }
  if (chart.panels.empty()) return;
  std::string caption = "Running angle by which queries and keys are turned, not reduced to one turn. " + where(spectra);
  caption += without(spectra, "rotation", [](const LayerSpectra& layer) { return !layer.angle.empty(); });
  figures.push_back({"phases", "Phases along a row", caption + left_out(panels), svg(chart)});
}

void add_gates(const Spectra& spectra, std::vector<Figure>& figures) {
  Chart chart;
  chart.id = "figure-gates";
  chart.x = {.label = "position", .high = static_cast<double>(spectra.time - 1), .whole = true};
  chart.y = {.label = "factor", .low = 0.0, .high = 1.0};
  std::size_t panels = 0;
  for (const LayerSpectra& layer : spectra.layers) {
    std::int64_t heads = 0;
    for (const LayerSpectra::Gate& gate : layer.gates) heads = std::max(heads, gate.heads);
    for (std::int64_t head = 0; head < heads; ++head) {
      if (++panels > most_panels) continue;
      ChartPanel panel{.title = "layer " + std::to_string(layer.layer) + ", head " + std::to_string(head)};
      for (const LayerSpectra::Gate& gate : layer.gates) {
        if (head >= gate.heads) continue;
        const std::string name = spoken(gate.name);
        auto series = std::find(chart.series.begin(), chart.series.end(), name);
        if (series == chart.series.end()) series = chart.series.insert(series, name);
        ChartLine line{.series = static_cast<std::size_t>(series - chart.series.begin()), .markers = false};
        for (std::int64_t t = 0; t < spectra.time; ++t) {
          const auto x = static_cast<double>(t);
          const double middle = quantile(gate, t, head, 50);
          line.points.push_back({x, middle, name + ", position " + std::to_string(t) + ": " + digits(middle)});
          if (gate.channels > 1) line.band.push_back({x, quantile(gate, t, head, 10), quantile(gate, t, head, 90)});
          chart.y.high = std::max(chart.y.high, std::ceil(quantile(gate, t, head, 90)));
        }
        panel.lines.push_back(std::move(line));
      }
      chart.panels.push_back(std::move(panel));
    }
  }
  if (chart.panels.empty()) return;
  std::string caption = "Gates along a row: medians over the channels of a head, bands from their 10 % to their 90 % quantile. " + where(spectra);
  caption += without(spectra, "gates", [](const LayerSpectra& layer) { return !layer.gates.empty(); });
  figures.push_back({"gates", "Gates along a row", caption + left_out(panels), svg(chart)});
}

}  // namespace

std::vector<Figure> spectra_figures(const Spectra& spectra) {
  std::vector<Figure> figures;
  add_temperatures(spectra, figures);
  add_phases(spectra, figures);
  add_gates(spectra, figures);
  return figures;
}

std::string spectra_csv(const Spectra& spectra) {
  Grid grid;
  grid.add({"layer", "quantity", "head", "index", "position", "value"});
  const auto add = [&](const LayerSpectra& layer, const std::string& quantity, const std::string& head, std::size_t index, const std::string& position,
                       double value) { grid.lines.push_back({std::to_string(layer.layer), quantity, head, std::to_string(index), position, shortest(value)}); };
  for (std::size_t t = 0; t < spectra.tokens.size(); ++t) grid.lines.push_back({"", "token", "", "", std::to_string(t), std::to_string(spectra.tokens[t])});
  for (const LayerSpectra& layer : spectra.layers) {
    for (std::size_t i = 0; i < layer.initial_temperature.size(); ++i) add(layer, "initial_temperature", "", i, "", layer.initial_temperature[i]);
    for (std::size_t i = 0; i < layer.temperature.size(); ++i) add(layer, "temperature", "", i, "", layer.temperature[i]);
    for (std::int64_t head = 0; head < layer.heads; ++head)
      for (const std::size_t pair : drawn_pairs(layer))
        for (std::int64_t t = 0; t < spectra.time; ++t) add(layer, "angle", std::to_string(head), pair, std::to_string(t), angle_at(layer, t, head, pair));
    for (const LayerSpectra::Gate& gate : layer.gates)
      for (std::int64_t head = 0; head < gate.heads; ++head)
        for (const int percent : percents)
          for (std::int64_t t = 0; t < spectra.time; ++t)
            add(layer, gate.name, std::to_string(head), static_cast<std::size_t>(percent), std::to_string(t), quantile(gate, t, head, percent));
  }
  return csv(grid);
}

}  // namespace phasor::analysis
