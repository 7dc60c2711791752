// Figures of the reported numbers: against length, against width, and as a heat map.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "analysis/figures/parts.h"
#include "analysis/text.h"

namespace phasor::analysis {
namespace {

std::string range_text(const Statistics& s) {
  return s.n > 1 ? " (" + digits(s.min) + " to " + digits(s.max) + ", n=" + std::to_string(s.n) + ")" : " (n=1)";
}

void add_point(ChartLine& line, double x, const Number& number, const std::string& tip) {
  const Statistics& s = number.statistics;
  if (!s.mean) {
    line.points.push_back({x, NAN, ""});  // breaks the line
    return;
  }
  line.points.push_back({x, *s.mean, tip + ": " + digits(s.mean) + range_text(s)});
  if (s.n > 1) line.band.push_back({x, *s.min, *s.max});
}

/// The trials behind a point, where they are few enough to be told apart.
void add_dots(ChartLine& line, double x, const FigureParts& parts, const std::vector<std::size_t>& trials,
              std::size_t number) {
  if (trials.size() < 2 || trials.size() > 10) return;
  for (const std::size_t trial : trials) {
    const std::optional<double>& value = parts.table.trials[trial].reported[number];
    if (value) line.dots.push_back({x, *value, parts.table.trials[trial].name + ": " + digits(*value)});
  }
}

bool powers_of_two(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) {
    int exponent = 0;
    return v > 0 && std::frexp(v, &exponent) == 0.5;
  });
}

ChartAxis axis_through(const std::string& label, const std::vector<double>& values) {
  ChartAxis axis;
  axis.label = label;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  if (*low > 0 && *high / *low >= 8) axis.kind = powers_of_two(values) ? AxisKind::log2 : AxisKind::log10;
  if (axis.kind != AxisKind::linear || values.size() <= 10) axis.at = values;
  if (axis.kind == AxisKind::linear) {
    const double room = (*high - *low) * 0.03;
    axis.low = *low - room;
    axis.high = *high + room;
  }
  axis.whole = true;
  return axis;
}

/// The reported numbers of one split and metric that have a length, by length.
std::vector<std::size_t> sliced(const Table& table, const Series& like) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < table.spec.report.size(); ++i) {
    const Series& series = table.spec.report[i];
    if (series.split == like.split && series.metric == like.metric && series.slice >= 0) numbers.push_back(i);
  }
  std::stable_sort(numbers.begin(), numbers.end(), [&](std::size_t a, std::size_t b) {
    return table.spec.report[a].slice < table.spec.report[b].slice;
  });
  return numbers;
}

Figure length_figure(const FigureParts& parts, const std::vector<std::size_t>& numbers, const std::string& name) {
  const Series& series = parts.table.spec.report[numbers.front()];
  const bool positions = series.metric.starts_with("position_");
  std::vector<double> lengths;
  for (const std::size_t number : numbers)
    lengths.push_back(static_cast<double>(parts.table.spec.report[number].slice));
  const std::string noun = positions ? "position" : parts.slice_noun();
  Chart chart = parts.chart(name);
  chart.x = axis_through(noun, lengths);
  chart.y = axis_of(series.metric);
  chart.more_is_better = more_is_better(series.metric);
  bool marked = false;
  const bool single = std::none_of(parts.table.axes.begin(), parts.table.axes.end(),
                                   [](const auto& axis) { return axis.role == "average"; });
  for (std::size_t column = 0; column < parts.panels(); ++column) {
    ChartPanel panel;
    panel.title = parts.columns[column];
    if (const std::optional<double> trained = parts.trained_to(column)) {
      panel.guides.push_back({*trained, "trained to " + tick_text(*trained)});
      marked = true;
    }
    for (std::size_t row = 0; row < parts.rows.size(); ++row) {
      ChartLine line;
      line.series = row;
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        add_point(line, lengths[i], parts.table.cell(row, column).numbers[numbers[i]],
                  parts.rows[row] + ", " + noun + " " + tick_text(lengths[i]));
        if (single) add_dots(line, lengths[i], parts, parts.reported(row, column), numbers[i]);
      }
      panel.lines.push_back(std::move(line));
    }
    chart.panels.push_back(std::move(panel));
  }
  Figure figure{name, "", "", ""};
  const std::string text = sentence(spoken(series.metric));
  figure.title = text + " against " + noun;
  figure.caption = text + " on " + series.split + " at the last evaluation against " + noun +
                   ", of the trials that the table reports. Lines are means over " + parts.seeds() +
                   ", bands reach from the lowest to the highest, dots are single trials." +
                   (marked ? " Dashed: the longest of training." : "") + parts.left_out(numbers.front());
  figure.svg = svg(chart);
  return figure;
}

std::optional<double> number_in(const std::string& label) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), value);
  if (error != std::errc() || end != label.data() + label.size()) return std::nullopt;
  return value;
}

/// A column axis whose labels are different numbers, and these.
std::optional<std::pair<std::size_t, std::vector<double>>> numeric_column(const Table& table) {
  for (std::size_t i = 0; i < table.axes.size(); ++i) {
    if (table.axes[i].role != "column" || table.axes[i].labels.size() < 2) continue;
    std::vector<double> values;
    for (const std::string& label : table.axes[i].labels) {
      if (const auto value = number_in(label)) values.push_back(*value);
    }
    if (std::set<double>(values.begin(), values.end()).size() == table.axes[i].labels.size())
      return std::pair(i, values);
  }
  return std::nullopt;
}

/// Columns of the table that differ only on the axis of numbers, in the order of its points; titled by the other axes.
struct WidthPanel {
  std::string title;
  std::vector<std::size_t> columns;
};
std::vector<WidthPanel> width_panels(const Table& table, std::size_t axis) {
  std::size_t before = 0;  // how many column axes come before this one
  for (std::size_t i = 0; i < axis; ++i) before += table.axes[i].role == "column" ? 1U : 0U;
  std::vector<WidthPanel> panels;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    std::vector<std::string> labels = table.columns[column];
    labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(before));
    const std::string title = join(labels, " / ");
    const auto known =
        std::find_if(panels.begin(), panels.end(), [&](const WidthPanel& panel) { return panel.title == title; });
    (known == panels.end() ? panels.emplace_back(WidthPanel{title, {}}) : *known).columns.push_back(column);
  }
  return panels;
}

}  // namespace

void add_length_figures(const FigureParts& parts, std::vector<Figure>& figures) {
  std::vector<Series> kinds = {parts.table.spec.primary};
  for (const Series& series : parts.table.spec.report) {
    const bool known = std::any_of(kinds.begin(), kinds.end(), [&](const Series& k) {
      return k.split == series.split && k.metric == series.metric;
    });
    if (!known) kinds.push_back(series);
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::vector<std::size_t> numbers = sliced(parts.table, kinds[i]);
    const std::string split = kinds[i].split == parts.table.spec.primary.split ? "" : kinds[i].split + "-";
    if (numbers.size() > 1)
      figures.push_back(length_figure(parts, numbers, i == 0 ? "length" : "length-" + split + kinds[i].metric));
  }
}

void add_width_figure(const FigureParts& parts, std::vector<Figure>& figures) {
  const auto axis = numeric_column(parts.table);
  if (!axis) return;
  const auto& [which, values] = *axis;
  const Series& primary = parts.table.spec.primary;
  std::vector<std::size_t> numbers = sliced(parts.table, primary);
  if (numbers.size() < 2 || numbers.size() > 4) numbers = {parts.primary};
  Chart chart = parts.chart("width");
  const std::string head = head_of(parts.table.axes[which]);
  chart.x = axis_through(head, values);
  chart.y = axis_of(primary.metric);
  chart.more_is_better = more_is_better(primary.metric);
  for (const WidthPanel& place : width_panels(parts.table, which)) {
    for (const std::size_t number : numbers) {
      if (chart.panels.size() == FigureParts::most_panels) break;
      ChartPanel panel;
      panel.title = place.title;
      if (numbers.size() > 1)
        panel.title += (place.title.empty() ? "" : ", ") + parts.slice_noun() + " " +
                       slice_to_text(parts.table.spec.report[number].slice);
      for (std::size_t row = 0; row < parts.rows.size(); ++row) {
        ChartLine line;
        line.series = row;
        for (std::size_t i = 0; i < place.columns.size(); ++i) {
          add_point(line, values[i], parts.table.cell(row, place.columns[i]).numbers[number],
                    parts.rows[row] + ", " + head + " " + tick_text(values[i]));
        }
        std::stable_sort(line.points.begin(), line.points.end(),
                         [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
        std::stable_sort(line.band.begin(), line.band.end(),
                         [](const ChartBand& a, const ChartBand& b) { return a.x < b.x; });
        panel.lines.push_back(std::move(line));
      }
      chart.panels.push_back(std::move(panel));
    }
  }
  figures.push_back({"width", sentence(spoken(primary.metric)) + " against " + head,
                     sentence(spoken(primary.metric)) + " on " + primary.split + " at the last evaluation against " +
                         head + ", of the trials that the table reports. Lines are means over " + parts.seeds() +
                         ", bands reach from the lowest to the highest." + parts.left_out(parts.primary),
                     svg(chart)});
}

void add_heatmap(const FigureParts& parts, std::vector<Figure>& figures) {
  if (parts.rows.size() < 2 || parts.columns.size() < 2) return;
  const Series& primary = parts.table.spec.primary;
  HeatMap map;
  map.id = "figure-heatmap";
  map.label = spoken(primary.metric);
  map.rows = parts.rows;
  map.columns = parts.columns;
  map.more_is_better = more_is_better(primary.metric);
  double low = INFINITY, high = -INFINITY;
  for (std::size_t row = 0; row < parts.rows.size(); ++row) {
    for (std::size_t column = 0; column < parts.columns.size(); ++column) {
      const Number& number = parts.table.cell(row, column).numbers[parts.primary];
      const Statistics& s = number.statistics;
      const std::string name = parts.rows[row] + " on " + parts.columns[column] + ": ";
      if (!s.mean) {
        map.cells.push_back({std::nullopt, "n/a",
                             name + "no number, " + std::to_string(number.counts.finite) + " of " +
                                 std::to_string(number.counts.expected) + " trials gave one"});
        continue;
      }
      low = std::min(low, *s.mean);
      high = std::max(high, *s.mean);
      map.cells.push_back({s.mean, map.more_is_better ? short_digits(fixed(*s.mean, 2)) : digits(s.mean),
                           name + digits(s.mean) + range_text(s)});
    }
  }
  if (!map.more_is_better && low < high) map.low = low, map.high = high;
  figures.push_back({"heatmap", "Rows and columns at a glance",
                     sentence(spoken(primary.metric)) + " on " + primary.split +
                         (primary.slice < 0 ? " over all lengths"
                                            : " at " + parts.slice_noun() + " " + slice_to_text(primary.slice)) +
                         ", means over " + parts.seeds() + "; the darker, the better. Hatched: no number to give.",
                     svg(map)});
}

}  // namespace phasor::analysis
