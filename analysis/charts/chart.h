#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/charts/axis.h"

namespace phasor::analysis {

/// A place in a chart, in the units of its axes, and what is said of it on hovering.
struct ChartPoint {
  double x = 0.0, y = 0.0;
  std::string tip = {};
};

/// Between `low` and `high` at x.
struct ChartBand {
  double x = 0.0, low = 0.0, high = 0.0;
};

/// Of a histogram: from zero up to `height`.
struct ChartBar {
  double from = 0.0, to = 0.0, height = 0.0;
};

/// One series in one panel. What is not finite, or not above zero on a logarithmic axis, is left out and breaks the
/// line.
struct ChartLine {
  std::size_t series = 0;  // index into Chart::series, which gives colour and marker
  std::vector<ChartPoint> points = {};
  std::vector<ChartBand> band = {};
  std::vector<ChartBar> bars = {};
  std::vector<ChartPoint> dots = {};     // single trials behind the line, pale
  std::vector<ChartPoint> rings = {};    // points to set off: a choice
  std::vector<ChartPoint> crosses = {};  // without a finite value: drawn at the worse edge, only x counts
  bool markers = true;                   // of points; without them they are still found by hovering
};

/// A vertical line across a panel: the training length.
struct ChartGuide {
  double x = 0.0;
  std::string label = {};
};

struct ChartPanel {
  std::string title = {};
  std::vector<ChartLine> lines = {};
  std::vector<ChartGuide> guides = {};
};

/// Small multiples that share their axes. Series have the same colour and marker in every panel.
struct Chart {
  std::string id = {};                   // unique in a page, letters, digits and '-'
  std::vector<std::string> series = {};  // names, in the order of the legend
  ChartAxis x, y;
  bool more_is_better = true;  // at which edge crosses stand: at the bottom when true
  std::vector<ChartPanel> panels = {};
};

/// Values in a grid; a cell without a value is hatched and has its text all the same.
struct HeatMap {
  struct Cell {
    std::optional<double> value;
    std::string text = {}, tip = {};
  };
  std::string id = {}, label = {};  // of the values
  std::vector<std::string> rows = {}, columns = {};
  std::vector<Cell> cells = {};  // a row after the other
  double low = 0.0, high = 1.0;
  bool more_is_better = true;  // the better, the darker
};

/// A whole SVG document: vector text, no scripts, nothing that is fetched. The same chart gives the same bytes. Every
/// text is escaped. `data-` attributes say where the panels lie, for pages that zoom (analysis/report/page.js).
std::string svg(const Chart& chart);
std::string svg(const HeatMap& map);

/// Colours that people with any of the common colour deficiencies tell apart (Okabe and Ito 2008, without the yellow,
/// which does not show on white); from the eighth series on they repeat with another marker and dashes.
std::string series_colour(std::size_t series);

}  // namespace phasor::analysis
