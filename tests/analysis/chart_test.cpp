#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <regex>
#include <string>
#include <vector>

#include "analysis/charts/chart.h"
#include "analysis/charts/svg.h"
#include "analysis/figures/theory.h"

namespace phasor::analysis {
namespace {

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

std::vector<double> values_of(const std::vector<Tick>& ticks) {
  std::vector<double> values;
  for (const Tick& tick : ticks) values.push_back(tick.value);
  return values;
}

std::string labels_of(const std::vector<Tick>& ticks) {
  std::string text;
  for (const Tick& tick : ticks) text += tick.label + " ";
  return text;
}

TEST(ChartAxis, LinearTicksAreRound) {
  ChartAxis axis{.label = "", .low = 0.0, .high = 1.0};
  EXPECT_EQ(values_of(ticks_of(axis, 5)), (std::vector<double>{0.0, 0.2, 0.4, 0.6, 0.8, 1.0}));
  EXPECT_EQ(labels_of(ticks_of(axis, 5)), "0 0.2 0.4 0.6 0.8 1 ");
  axis.high = 0.3;  // 3 * 0.1 is not 0.3 in binary
  EXPECT_EQ(labels_of(ticks_of(axis, 3)), "0 0.1 0.2 0.3 ");
  axis.low = -20.0, axis.high = 20.0;
  EXPECT_EQ(labels_of(ticks_of(axis, 4)), "−20 −10 0 10 20 ");
  axis.low = 0.0, axis.high = 48000.0;
  EXPECT_EQ(labels_of(ticks_of(axis, 4)), "0 20,000 40,000 ");
  axis.high = 3.0, axis.whole = true;
  EXPECT_EQ(labels_of(ticks_of(axis, 9)), "0 1 2 3 ");
}

TEST(ChartAxis, LogarithmicTicksArePowers) {
  ChartAxis axis{.label = "", .kind = AxisKind::log10, .low = 0.9e-5, .high = 1.1};
  EXPECT_EQ(labels_of(ticks_of(axis, 6)), "10⁻⁵ 10⁻⁴ 10⁻³ 10⁻² 10⁻¹ 1 ");
  axis.low = 0.05, axis.high = 2.0;
  EXPECT_EQ(labels_of(ticks_of(axis, 6)), "0.05 0.1 0.2 0.5 1 2 ");
  axis.kind = AxisKind::log2, axis.low = 16, axis.high = 512;
  EXPECT_EQ(labels_of(ticks_of(axis, 6)), "16 32 64 128 256 512 ");
  axis.at = {64, 1024, 16, -1};
  EXPECT_EQ(labels_of(ticks_of(axis, 6)), "16 64 ") << "only what is wanted and inside";
}

TEST(ChartAxis, PlacesRunFromZeroToOne) {
  const ChartAxis linear{.label = "", .low = 2.0, .high = 6.0};
  EXPECT_DOUBLE_EQ(linear.place(3.0), 0.25);
  const ChartAxis log{.label = "", .kind = AxisKind::log10, .low = 1e-3, .high = 1e1};
  EXPECT_DOUBLE_EQ(log.place(1e-3), 0.0);
  EXPECT_NEAR(log.place(1e-2), 0.25, 1e-12);
  EXPECT_FALSE(log.fits(0.0));
  EXPECT_FALSE(log.fits(NAN));
  EXPECT_FALSE(linear.fits(INFINITY));
}

TEST(ChartAxis, SpansWhatIsThere) {
  ChartAxis axis;
  span_axis(axis, {0.13, NAN, 0.87, INFINITY});
  EXPECT_DOUBLE_EQ(axis.low, 0.0);
  EXPECT_DOUBLE_EQ(axis.high, 1.0);
  ChartAxis single;
  span_axis(single, {4.0});
  EXPECT_LT(single.low, 4.0);
  EXPECT_GT(single.high, 4.0);
  ChartAxis empty{.label = "", .kind = AxisKind::log10};
  span_axis(empty, {0.0, -1.0});
  EXPECT_LT(empty.low, empty.high);
  ChartAxis given{.label = "", .low = 0.0, .high = 1.0};
  span_axis(given, {500.0});
  EXPECT_EQ(given.high, 1.0);
}

TEST(ChartAxis, SmallAndLargeNumbersAreShort) {
  EXPECT_EQ(tick_text(0.0), "0");
  EXPECT_EQ(tick_text(0.0015), "0.0015");
  EXPECT_EQ(tick_text(0.0003), "3×10⁻⁴");
  EXPECT_EQ(tick_text(1e6), "10⁶");
  EXPECT_EQ(tick_text(12000), "12,000");
  EXPECT_EQ(tick_text(-0.5), "−0.5");
}

TEST(ChartSvg, EscapesEverything) {
  EXPECT_EQ(escaped("<b a=\"1\" c='2'>&"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;");
  EXPECT_EQ(escaped(std::string("a\0b\n", 4)), "a b ");
  EXPECT_EQ(escaped("\xC3\x28"), "\xEF\xBF\xBD(");
  EXPECT_EQ(escaped("é→"), "é→");
}

TEST(ChartSvg, CoordinatesAreShort) {
  EXPECT_EQ(coordinate(1.0), "1");
  EXPECT_EQ(coordinate(-0.001), "0");
  EXPECT_EQ(coordinate(2.504), "2.5");
  EXPECT_EQ(coordinate(NAN), "0");
}

TEST(ChartSvg, FitsTextByCharacters) {
  EXPECT_EQ(fitted("short", 200, 11), "short");
  const std::string cut = fitted("äöüäöüäöüäöü", 40, 11);
  EXPECT_TRUE(cut.ends_with("…"));
  EXPECT_LE(text_width(cut, 11), 40.0);
  EXPECT_EQ(escaped(cut), cut) << "no character was cut in the middle";
}

Chart two_panels() {
  Chart chart;
  chart.id = "t";
  chart.series = {"one", "<two>", "nowhere"};
  chart.x = {.label = "length", .low = 0.0, .high = 10.0};
  chart.y = {.label = "accuracy", .low = 0.0, .high = 1.0};
  ChartLine one{.series = 0, .points = {{0, 0, "a"}, {5, NAN, ""}, {10, 1, "b & c"}}};
  ChartLine two{.series = 1, .points = {{0, 1, ""}, {5, 0.5, ""}}, .band = {{0, 0.9, 1.0}, {5, 0.4, 0.6}}, .crosses = {{10, 0, "diverged"}}};
  chart.panels = {{"left", {one, two}, {{5.0, "trained to 5"}}}, {"right", {two}, {}}};
  return chart;
}

TEST(Chart, PutsPointsWhereTheyBelong) {
  const std::string text = svg(two_panels());
  std::smatch box;
  ASSERT_TRUE(std::regex_search(text, box, std::regex("data-box=\"([\\d.]+) ([\\d.]+) ([\\d.]+) ([\\d.]+)\"")));
  const double x = std::stod(box[1]), y = std::stod(box[2]), w = std::stod(box[3]), h = std::stod(box[4]);
  // (0, 0) is the lower left corner, (10, 1) the upper right one.
  EXPECT_NE(text.find("translate(" + coordinate(x) + " " + coordinate(y + h) + ")\" class=\"mark\" fill=\"#0072B2\" stroke=\"#fff\" stroke-width=\".8\"><title>a</title>"), std::string::npos);
  EXPECT_NE(text.find("translate(" + coordinate(x + w) + " " + coordinate(y) + ")\" class=\"mark\" fill=\"#0072B2\" stroke=\"#fff\" stroke-width=\".8\"><title>b &amp; c</title>"), std::string::npos);
  // The second series, half way.
  EXPECT_NE(text.find("L" + coordinate(x + w / 2) + " " + coordinate(y + h / 2)), std::string::npos);
  // A cross of what diverged stands at the worse edge.
  EXPECT_NE(text.find("translate(" + coordinate(x + w) + " " + coordinate(y + h - 6) + ")\" stroke=\"#D55E00\""), std::string::npos);
}

TEST(Chart, HasWhatItWasGivenAndIsTheSameTwice) {
  const std::string text = svg(two_panels());
  EXPECT_EQ(text, svg(two_panels()));
  EXPECT_EQ(count_of(text, "class=\"panel\""), 2U);
  EXPECT_EQ(count_of(text, "class=\"line\""), 3U);
  EXPECT_EQ(count_of(text, "class=\"band\""), 2U);
  EXPECT_EQ(count_of(text, "class=\"key\""), 2U) << "a series that no panel has is not in the legend";
  EXPECT_EQ(count_of(text, "class=\"guide\""), 1U);
  EXPECT_NE(text.find("&lt;two&gt;"), std::string::npos);
  EXPECT_EQ(text.find("<two>"), std::string::npos);
  EXPECT_EQ(count_of(text, "<script"), 0U);
  EXPECT_EQ(count_of(text, "http"), 1U) << "only the name space";
  // What is not finite breaks the line: two moves, nothing drawn between.
  std::smatch line;
  ASSERT_TRUE(std::regex_search(text, line, std::regex("class=\"line\" d=\"([^\"]*)\"")));
  EXPECT_EQ(count_of(line[1], "M"), 2U);
  EXPECT_EQ(count_of(line[1], "L"), 0U);
}

TEST(Chart, MoreSeriesThanColoursStayApart) {
  EXPECT_EQ(series_colour(0), series_colour(7));
  Chart chart = two_panels();
  chart.series.assign(9, "s");
  chart.panels.resize(1);
  chart.panels[0].lines = {{.series = 0, .points = {{0, 0, ""}, {1, 1, ""}}}, {.series = 7, .points = {{0, 0, ""}, {1, 1, ""}}}};
  EXPECT_EQ(count_of(svg(chart), "stroke-dasharray=\"5 2.5\""), 1U);
}

TEST(Chart, LabelsAtTheEndsDoNotOverlap) {
  Chart chart = two_panels();
  chart.series = {"a", "b", "c", "d", "e"};
  chart.panels.resize(1);
  chart.panels[0].lines.clear();
  for (std::size_t i = 0; i < 5; ++i) chart.panels[0].lines.push_back({.series = i, .points = {{0, 0, ""}, {10, 0.001 * static_cast<double>(i), ""}}});
  const std::string text = svg(chart);
  const std::string legend = text.substr(text.find("class=\"legend\""));
  std::vector<double> heights;
  const std::regex label("<text x=\"[\\d.]+\" y=\"([\\d.]+)\"");
  for (std::sregex_iterator found(legend.begin(), legend.end(), label), end; found != end; ++found) heights.push_back(std::stod((*found)[1]));
  ASSERT_EQ(heights.size(), 5U);
  std::sort(heights.begin(), heights.end());
  for (std::size_t i = 1; i < heights.size(); ++i) EXPECT_GE(heights[i] - heights[i - 1], 13.9);
}

TEST(Chart, NothingToShowIsStillAChart) {
  Chart chart;
  chart.id = "e";
  chart.series = {"a"};
  chart.panels = {{"p", {{.series = 0}}, {}}};
  EXPECT_TRUE(svg(chart).ends_with("</svg>\n"));
}

TEST(TheoryFigures, HaveEveryCurve) {
  const std::vector<Figure> figures = theory_figures();
  ASSERT_EQ(figures.size(), 2U);
  EXPECT_EQ(count_of(figures[0].svg, "class=\"line\""), 5U);
  EXPECT_NE(figures[0].svg.find("tan, e = 0.1, pair 32: 0.132"), std::string::npos);
  EXPECT_EQ(count_of(figures[1].svg, "class=\"line\""), 4U);
  EXPECT_NE(figures[1].svg.find("rectangular, 10.25 Hz: 0.0 dB"), std::string::npos) << "the peak is where the sine is";
}

TEST(HeatMap, DarkerIsBetter) {
  HeatMap map{.id = "h", .label = "accuracy", .rows = {"r"}, .columns = {"a", "b", "<c>"}, .cells = {{0.0, "0", "zero"}, {1.0, "1", "one"}, {std::nullopt, "n/a", "none"}}};
  const std::string text = svg(map);
  const auto fill = [](const std::string& from, int which) {
    std::size_t at = from.find("class=\"mark\"");
    for (int i = 0; i < which; ++i) at = from.find("class=\"mark\"", at + 1);
    at = from.find("fill=\"", at) + 6;
    return from.substr(at, from.find('"', at) - at);
  };
  EXPECT_EQ(fill(text, 0), "#f7fafd");
  EXPECT_EQ(fill(text, 1), "#08386c");
  EXPECT_EQ(fill(text, 2), "url(#h-none)");
  EXPECT_NE(text.find("&lt;c&gt;"), std::string::npos);
  map.more_is_better = false;
  EXPECT_EQ(fill(svg(map), 0), "#08386c");
}

}  // namespace
}  // namespace phasor::analysis
