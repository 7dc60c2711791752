// Figures of a trained model along a row, from numbers made up here. Whether a model shows the right ones: tests/cli/spectra.py.

#include <gtest/gtest.h>

#include <cmath>

#include "analysis/figures/spectra.h"
#include "tests/analysis/sweep.h"

namespace phasor::analysis {
namespace {

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

/// Layers of two heads and six pairs of channels, five tokens: pair p of head h turns by (h + 1) t times its temperature, the
/// channels of head h keep 0.1 to 0.5 and more.
results::Spectra sample(std::int64_t layers, bool learned) {
  results::Spectra spectra{"0123456789", "S2 x gla x selective_rope", "valid", 4, 0, 5, {3, 1, 0, 1, 2}, {}};
  for (std::int64_t i = 0; i < layers; ++i) {
    results::LayerSpectra layer;
    layer.layer = i;
    layer.initial_temperature = {1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125};
    layer.temperature = layer.initial_temperature;
    if (learned) layer.temperature[1] = -2.0 - static_cast<double>(i);
    layer.heads = 2;
    layer.planes = 6;
    results::LayerSpectra::Gate kept{"kept", 2, 5, {}}, phase{"phase_gate", 2, 1, {}};
    for (int t = 0; t < 5; ++t)
      for (int h = 0; h < 2; ++h) {
        for (const double temperature : layer.temperature) layer.angle.push_back(temperature * (h + 1) * t);
        for (int c = 0; c < 5; ++c) kept.value.push_back(0.1 * (c + 1) + 0.1 * h + 0.01 * t);
        phase.value.push_back(0.2 * t);
      }
    layer.gates = {kept, phase};
    spectra.layers.push_back(layer);
  }
  return spectra;
}

TEST(Spectra, ThreeFiguresWithAPanelForEveryHead) {
  const std::vector<Figure> figures = spectra_figures(sample(2, true));
  ASSERT_EQ(figures.size(), 3u);
  EXPECT_EQ(figures[0].name, "temperatures");
  EXPECT_EQ(count_of(figures[0].svg, "class=\"line\""), 3u) << "before training, and two layers that have moved";
  EXPECT_NE(figures[0].caption.find("2 negative ones by size"), std::string::npos) << figures[0].caption;
  EXPECT_EQ(figures[1].name, "phases");
  EXPECT_EQ(count_of(figures[1].svg, "class=\"panel\""), 4u);
  EXPECT_EQ(count_of(figures[1].svg, "class=\"line\""), 16u) << "four pairs in every panel";
  EXPECT_EQ(figures[2].name, "gates");
  EXPECT_EQ(count_of(figures[2].svg, "class=\"panel\""), 4u);
  EXPECT_EQ(count_of(figures[2].svg, "class=\"line\""), 8u);
  EXPECT_EQ(count_of(figures[2].svg, "class=\"band\""), 4u) << "of what has several channels";
  for (const Figure& figure : figures) EXPECT_NE(figure.caption.find("trial 01234567, row 0 of valid at length 4."), std::string::npos) << figure.caption;
}

TEST(Spectra, FixedTemperaturesAreOneLine) {
  const Figure figure = spectra_figures(sample(2, false)).front();
  EXPECT_EQ(count_of(figure.svg, "class=\"line\""), 1u);
  EXPECT_NE(figure.caption.find("They are fixed"), std::string::npos);
}

TEST(Spectra, WhatALayerLacksAndWhatDoesNotFitIsSaid) {
  results::Spectra spectra = sample(8, true);
  spectra.layers[3] = {};
  spectra.layers[3].layer = 3;
  const std::vector<Figure> figures = spectra_figures(spectra);
  EXPECT_NE(figures[0].caption.find("No temperatures in layer 3."), std::string::npos) << figures[0].caption;
  EXPECT_NE(figures[1].caption.find("No rotation in layer 3. 2 more panels are in the CSV alone."), std::string::npos) << figures[1].caption;
  EXPECT_EQ(count_of(figures[2].svg, "class=\"panel\""), 12u);
  for (results::LayerSpectra& layer : spectra.layers) layer.gates.clear();
  EXPECT_EQ(spectra_figures(spectra).size(), 2u);
}

TEST(Spectra, TheCsvHasWhatIsDrawn) {
  const auto lines = read_csv(spectra_csv(sample(1, true)));
  std::map<std::string, double> found;
  for (const auto& line : lines) found[line.at("quantity") + " " + line.at("head") + " " + line.at("index") + " " + line.at("position")] = std::stod(line.at("value"));
  EXPECT_EQ(found.size(), lines.size()) << "every number once";
  EXPECT_EQ(lines.size(), 5u + 6 + 6 + 2 * 4 * 5 + 2 * 3 * 5 * 2);
  EXPECT_EQ(found.at("token   4"), 2.0);
  EXPECT_EQ(found.at("temperature  1 "), -2.0);
  EXPECT_EQ(found.at("initial_temperature  1 "), 0.5);
  EXPECT_DOUBLE_EQ(found.at("angle 1 1 3"), -12.0);  // the fastest
  EXPECT_DOUBLE_EQ(found.at("angle 0 5 4"), 0.125);  // the slowest
  EXPECT_FALSE(found.contains("angle 0 2 4")) << "not drawn";
  EXPECT_DOUBLE_EQ(found.at("kept 1 50 2"), 0.42);
  EXPECT_DOUBLE_EQ(found.at("kept 0 10 0"), 0.14);
  EXPECT_DOUBLE_EQ(found.at("kept 0 90 0"), 0.46);
  EXPECT_DOUBLE_EQ(found.at("phase_gate 0 10 3"), 0.6);
}

}  // namespace
}  // namespace phasor::analysis
