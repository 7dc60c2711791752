#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "analysis/charts/chart.h"
#include "analysis/charts/svg.h"

namespace phasor::analysis {
namespace {

constexpr double width = 680.0, row_height = 30.0, text_size = 11.0;

/// One hue from nearly white to dark blue: lightness alone carries the order, so it survives grey print and any colour
/// vision.
std::string shade(double share) {
  constexpr std::array<std::array<double, 3>, 5> stops = {
      {{247, 250, 253}, {204, 222, 240}, {132, 178, 216}, {52, 120, 182}, {8, 56, 108}}};
  const double at = std::clamp(share, 0.0, 1.0) * (stops.size() - 1);
  const auto first = std::min(static_cast<std::size_t>(at), stops.size() - 2);
  const double rest = at - static_cast<double>(first);
  char text[8];
  const auto mixed = [&](std::size_t i) {
    return static_cast<unsigned>(std::lround(stops[first][i] + rest * (stops[first + 1][i] - stops[first][i]))) & 0xFFU;
  };
  std::snprintf(text, sizeof text, "#%02x%02x%02x", mixed(0), mixed(1), mixed(2));
  return text;
}

double share_of(const HeatMap& map, double value) {
  const double share = map.high > map.low ? (value - map.low) / (map.high - map.low) : 1.0;
  return map.more_is_better ? share : 1.0 - share;
}

std::string scale_bar(const HeatMap& map, double x, double y) {
  std::string out = "<g class=\"scale\">\n" + text_at(x, y + 9, map.label, {.anchor = "end"});
  constexpr int steps = 24;
  for (int i = 0; i < steps; ++i) {
    const double share = (i + 0.5) / steps;
    out += "<rect x=\"" + coordinate(x + 44 + i * 4.0) + "\" y=\"" + coordinate(y) +
           "\" width=\"4.3\" height=\"10\" fill=\"" + shade(map.more_is_better ? share : 1.0 - share) + "\"/>\n";
  }
  out += text_at(x + 40, y + 9, tick_text(map.low), {.size = 10.0, .anchor = "end", .fill = "#444"});
  return out + text_at(x + 44 + steps * 4.0 + 5, y + 9, tick_text(map.high), {.size = 10.0, .fill = "#444"}) + "</g>\n";
}

}  // namespace

std::string svg(const HeatMap& map) {
  double label = 60.0;
  for (const std::string& row : map.rows) label = std::max(label, text_width(row, text_size) + 20);
  label = std::min(label, 230.0);
  const double cell = std::min((width - label) / std::max<double>(1.0, static_cast<double>(map.columns.size())), 120.0);
  const double top = 24.0, bottom = top + row_height * static_cast<double>(map.rows.size());
  std::string out = svg_head(width, bottom + 30, map.id, "role=\"img\"");
  out += "<pattern id=\"" + escaped(map.id) +
         "-none\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
         "<rect width=\"5\" height=\"5\" fill=\"#fff\"/><path d=\"M0 0V5\" stroke=\"#bbb\" "
         "stroke-width=\"1.4\"/></pattern>\n";
  for (std::size_t column = 0; column < map.columns.size(); ++column) {
    out += text_at(label + cell * (static_cast<double>(column) + 0.5), top - 8,
                   fitted(map.columns[column], cell - 4, text_size), {.anchor = "middle"});
  }
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    const double y = top + row_height * static_cast<double>(row);
    out += text_at(label - 9, y + row_height / 2 + 4, fitted(map.rows[row], label - 18, text_size), {.anchor = "end"});
    for (std::size_t column = 0; column < map.columns.size(); ++column) {
      const HeatMap::Cell& found = map.cells[row * map.columns.size() + column];
      const bool some = found.value && std::isfinite(*found.value);
      const double share = some ? share_of(map, *found.value) : 0.0, x = label + cell * static_cast<double>(column);
      out += "<g class=\"mark\"><rect x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\" width=\"" +
             coordinate(cell) + "\" height=\"" + coordinate(row_height) + "\" fill=\"" +
             (some ? shade(share) : "url(#" + escaped(map.id) + "-none)") + "\" stroke=\"#fff\" stroke-width=\"1.5\"/>";
      out += text_at(x + cell / 2, y + row_height / 2 + 4, fitted(found.text, cell - 4, text_size),
                     {.anchor = "middle", .fill = share > 0.55 ? "#fff" : "#222"});
      out += "<title>" + escaped(found.tip) + "</title></g>\n";
    }
  }
  return out + scale_bar(map, label + text_width(map.label, text_size), bottom + 12) + "</svg>\n";
}

}  // namespace phasor::analysis
