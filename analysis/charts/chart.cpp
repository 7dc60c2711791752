#include "analysis/charts/chart.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/charts/svg.h"
#include "core/spec/json.h"

namespace phasor::analysis {
namespace {

constexpr std::array colours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444"};
constexpr double width = 680.0, left = 56.0, right = 14.0, title_height = 28.0, tick_height = 18.0,
                 label_height = 16.0, legend_line = 17.0;
constexpr const char* pale = "#e4e4e4";

struct Box {
  double x = 0.0, y = 0.0, w = 0.0, h = 0.0;
};

std::string xy(double x, double y) { return coordinate(x) + " " + coordinate(y); }

std::string line_from(double x1, double y1, double x2, double y2, const std::string& attributes) {
  return "<path d=\"M" + xy(x1, y1) + "L" + xy(x2, y2) + "\" " + attributes + "/>\n";
}

class Drawing {
 public:
  explicit Drawing(const Chart& chart) : chart_(chart) {
    span();
    lay_out();
  }
  std::string text();

 private:
  void span();
  void lay_out();
  double gap_between() const;
  double x_of(const Box& box, double x) const { return box.x + box.w * chart_.x.place(x); }
  double y_of(const Box& box, double y) const { return box.y + box.h * (1.0 - chart_.y.place(y)); }
  bool fits(double x, double y) const { return chart_.x.fits(x) && chart_.y.fits(y); }
  bool below(std::size_t panel) const { return panel + columns_ < chart_.panels.size(); }

  void draw_legend();
  void draw_panel(std::size_t index);
  void draw_axes(const Box& box, std::size_t index);
  void draw_guides(const Box& box, const ChartPanel& panel);
  void draw_line(const Box& box, const ChartLine& line);
  void draw_path(const Box& box, const ChartLine& line);
  void draw_marks(const Box& box, const ChartLine& line);
  void draw_labels(const Box& box, const ChartPanel& panel);
  std::string key(double x, double y, std::size_t series) const;
  std::string dashes(std::size_t series) const { return series < colours.size() ? "" : " stroke-dasharray=\"5 2.5\""; }

  Chart chart_;
  std::vector<Box> boxes_;
  std::vector<bool> shown_;  // series that some panel has
  std::size_t columns_ = 1;
  bool direct_ = false;  // series are named at the ends of their lines
  double legend_height_ = 0.0, height_ = 0.0;
  std::string out_;
};

void Drawing::span() {
  std::vector<double> xs, ys;
  shown_.assign(chart_.series.size(), false);
  const auto add = [&](double x, double y) {
    if (!fits(x, y)) return;
    xs.push_back(x);
    ys.push_back(y);
  };
  for (const ChartPanel& panel : chart_.panels) {
    for (const ChartLine& line : panel.lines) {
      shown_[line.series] = true;
      for (const auto* points : {&line.points, &line.dots, &line.rings}) {
        for (const ChartPoint& point : *points) add(point.x, point.y);
      }
      for (const ChartBand& band : line.band) {
        add(band.x, band.low);
        add(band.x, band.high);
      }
      for (const ChartBar& bar : line.bars) {
        add(bar.from, 0.0);
        add(bar.to, bar.height);
      }
      for (const ChartPoint& cross : line.crosses) xs.push_back(cross.x);
    }
  }
  span_axis(chart_.x, xs);
  span_axis(chart_.y, ys);
}

void Drawing::lay_out() {
  const std::size_t count = chart_.panels.size();
  const auto series = static_cast<std::size_t>(std::count(shown_.begin(), shown_.end(), true));
  columns_ = count <= 1 ? 1 : count == 2 || count == 4 ? 2 : 3;
  direct_ = count == 1 && series > 1 && series <= 12;
  double margin = right;
  if (direct_) {
    for (std::size_t i = 0; i < series; ++i)
      margin = std::max(margin, std::min(text_width(chart_.series[i], 11) + 34, 190.0));
  }
  if (series > 1 && !direct_) {
    double x = left;
    legend_height_ = legend_line + 6;
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      if (!shown_[i]) continue;
      const double wide = text_width(chart_.series[i], 11) + 40;
      if (x + wide > width - right && x > left) x = left, legend_height_ += legend_line;
      x += wide;
    }
  }
  const double gap = gap_between();
  const double w = (width - left - margin - gap * static_cast<double>(columns_ - 1)) / static_cast<double>(columns_);
  const double h = count <= 1 ? 250.0 : count <= 4 ? 190.0 : 140.0;
  const bool titled = std::any_of(chart_.panels.begin(), chart_.panels.end(),
                                  [](const ChartPanel& panel) { return !panel.title.empty(); });
  double y = legend_height_ + (titled ? title_height : 16.0);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t column = i % columns_;
    boxes_.push_back({left + static_cast<double>(column) * (w + gap), y, w, h});
    if (column + 1 == columns_) y += h + tick_height + (titled ? title_height : 0.0) + 4.0;
  }
  height_ = (boxes_.empty() ? y : boxes_.back().y + h) + tick_height + label_height + 6.0;
}

/// Between panels side by side. The last label below one and the first below the next may stand at their very ends.
double Drawing::gap_between() const {
  constexpr double least = 18.0, clear = 8.0;
  double widest = 0.0;
  for (const Tick& tick : ticks_of(chart_.x, 3)) widest = std::max(widest, text_width(tick.label, 10.5));
  return std::max(least, columns_ > 1 ? widest + clear : 0.0);
}

std::string Drawing::key(double x, double y, std::size_t series) const {
  const std::string colour = series_colour(series);
  return line_from(x, y, x + 20, y, "stroke=\"" + colour + "\" stroke-width=\"1.6\"" + dashes(series)) +
         marker(series, x + 10, y, 3.2, "fill=\"" + colour + "\"");
}

void Drawing::draw_legend() {
  if (legend_height_ == 0.0) return;
  double x = left, y = legend_line - 4;
  out_ += "<g class=\"legend\">\n";
  for (std::size_t i = 0; i < chart_.series.size(); ++i) {
    if (!shown_[i]) continue;
    const double wide = text_width(chart_.series[i], 11) + 40;
    if (x + wide > width - right && x > left) x = left, y += legend_line;
    out_ += "<g class=\"key\" data-series=\"" + std::to_string(i) + "\">" + key(x, y - 3.5, i) +
            text_at(x + 25, y, chart_.series[i]) + "</g>\n";
    x += wide;
  }
  out_ += "</g>\n";
}

void Drawing::draw_axes(const Box& box, std::size_t index) {
  const double bottom = box.y + box.h;
  const int x_ticks = std::max(2, static_cast<int>(box.w / 55)), y_ticks = std::max(3, static_cast<int>(box.h / 36));
  out_ += "<g class=\"yaxis\">\n";
  for (const Tick& tick : ticks_of(chart_.y, y_ticks)) {
    const double y = y_of(box, tick.value);
    out_ += line_from(box.x, y, box.x + box.w, y, std::string("stroke=\"") + pale + "\" stroke-width=\".7\"");
    if (index % columns_ == 0)
      out_ += text_at(box.x - 7, y + 3.6, tick.label, {.size = 10.5, .anchor = "end", .fill = "#444"});
  }
  out_ += "</g>\n<g class=\"xaxis\">\n";
  double free = -1e9;  // where the label before ends
  for (const Tick& tick : ticks_of(chart_.x, x_ticks)) {
    const double x = x_of(box, tick.value), half = text_width(tick.label, 10.5) / 2;
    out_ += line_from(x, bottom, x, bottom + 3.5, "stroke=\"#444\" stroke-width=\".8\"");
    if (x - half < free + 5) continue;
    out_ += text_at(x, bottom + 15, tick.label, {.size = 10.5, .anchor = "middle", .fill = "#444"});
    free = x + half;
  }
  out_ += "</g>\n" + line_from(box.x, bottom, box.x + box.w, bottom, "stroke=\"#444\" stroke-width=\".8\"");
  if (!below(index)) {
    out_ += text_at(box.x + box.w / 2, bottom + tick_height + label_height - 3, chart_.x.label, {.anchor = "middle"});
  }
  if (index % columns_ == 0) {
    out_ += "<g transform=\"translate(13 " + coordinate(box.y + box.h / 2) + ") rotate(-90)\">" +
            text_at(0, 0, fitted(chart_.y.label, box.h + 34, 11), {.anchor = "middle"}) + "</g>\n";
  }
}

void Drawing::draw_guides(const Box& box, const ChartPanel& panel) {
  for (const ChartGuide& guide : panel.guides) {
    if (!chart_.x.fits(guide.x) || chart_.x.place(guide.x) < 0 || chart_.x.place(guide.x) > 1) continue;
    const double x = x_of(box, guide.x);
    out_ += line_from(x, box.y, x, box.y + box.h,
                      "class=\"guide\" stroke=\"#777\" stroke-width=\".9\" stroke-dasharray=\"3 3\" "
                      "vector-effect=\"non-scaling-stroke\"");
  }
}

void Drawing::draw_path(const Box& box, const ChartLine& line) {
  const std::string colour = series_colour(line.series);
  if (!line.band.empty()) {
    std::string upper, lower;
    for (const ChartBand& band : line.band) {
      if (!fits(band.x, band.low) || !fits(band.x, band.high)) continue;
      upper += (upper.empty() ? "M" : "L") + xy(x_of(box, band.x), y_of(box, band.high));
      lower = "L" + xy(x_of(box, band.x), y_of(box, band.low)) + lower;
    }
    if (!upper.empty())
      out_ += "<path class=\"band\" d=\"" + upper + lower + "Z\" fill=\"" + colour + "\" fill-opacity=\".13\"/>\n";
  }
  for (const ChartBar& bar : line.bars) {
    if (!fits(bar.from, bar.height) || bar.height <= 0) continue;
    const double x = x_of(box, bar.from), y = y_of(box, bar.height);
    out_ += "<rect x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\" width=\"" +
            coordinate(x_of(box, bar.to) - x) + "\" height=\"" + coordinate(box.y + box.h - y) + "\" fill=\"" + colour +
            "\" fill-opacity=\".55\" stroke=\"#fff\" stroke-width=\".5\"/>\n";
  }
  std::string path;
  bool broken = true;
  for (const ChartPoint& point : line.points) {
    const bool good = fits(point.x, point.y);
    if (good) path += (broken ? "M" : "L") + xy(x_of(box, point.x), y_of(box, point.y));
    broken = !good;
  }
  if (!path.empty()) {
    out_ += "<path class=\"line\" d=\"" + path + "\" fill=\"none\" stroke=\"" + colour +
            "\" stroke-width=\"1.6\" stroke-linejoin=\"round\" vector-effect=\"non-scaling-stroke\"" +
            dashes(line.series) + "/>\n";
  }
}

void Drawing::draw_marks(const Box& box, const ChartLine& line) {
  const std::string colour = series_colour(line.series);
  for (const ChartPoint& dot : line.dots) {
    if (!fits(dot.x, dot.y)) continue;
    out_ += marker(0, x_of(box, dot.x), y_of(box, dot.y), 1.9,
                   "class=\"mark\" fill=\"" + colour + "\" fill-opacity=\".45\"", dot.tip);
  }
  for (const ChartPoint& point : line.points) {
    if (!fits(point.x, point.y)) continue;
    const std::string look =
        line.markers ? "fill=\"" + colour + "\" stroke=\"#fff\" stroke-width=\".8\"" : "fill=\"none\"";
    if (line.markers || !point.tip.empty()) {
      out_ += marker(line.series, x_of(box, point.x), y_of(box, point.y), 3.4, "class=\"mark\" " + look, point.tip);
    }
  }
  for (const ChartPoint& ring : line.rings) {
    if (!fits(ring.x, ring.y)) continue;
    out_ += marker(0, x_of(box, ring.x), y_of(box, ring.y), 6.4,
                   "class=\"ring\" fill=\"none\" stroke=\"" + colour + "\" stroke-width=\"1.1\"");
  }
  for (const ChartPoint& cross : line.crosses) {
    if (!chart_.x.fits(cross.x)) continue;
    const double y = chart_.more_is_better ? box.y + box.h - 6 : box.y + 6;
    out_ += "<path class=\"mark\" d=\"M-3.2 -3.2L3.2 3.2M-3.2 3.2L3.2 -3.2\" transform=\"translate(" +
            xy(x_of(box, cross.x), y) + ")\" stroke=\"" + colour + "\" stroke-width=\"1.4\"><title>" +
            escaped(cross.tip) + "</title></path>\n";
  }
}

/// Names at the ends of the lines, moved apart where they would overlap.
void Drawing::draw_labels(const Box& box, const ChartPanel& panel) {
  struct Label {
    double at, from;
    std::size_t series;
  };
  std::vector<Label> labels;
  for (const ChartLine& line : panel.lines) {
    const auto last =
        std::find_if(line.points.rbegin(), line.points.rend(), [&](const ChartPoint& p) { return fits(p.x, p.y); });
    if (last == line.points.rend()) continue;
    const double y = y_of(box, last->y);
    labels.push_back({y, y, line.series});
  }
  std::stable_sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.at < b.at; });
  constexpr double apart = 14.0;
  double over = 0.0;  // by how much the lowest label would leave the panel
  for (std::size_t i = 1; i < labels.size(); ++i) labels[i].at = std::max(labels[i].at, labels[i - 1].at + apart);
  if (!labels.empty()) over = std::max(0.0, labels.back().at - (box.y + box.h));
  for (std::size_t i = labels.size(); over > 0 && i-- > 0;) {
    const double limit = i + 1 == labels.size() ? box.y + box.h : labels[i + 1].at - apart;
    labels[i].at = std::min(labels[i].at, limit);
  }
  out_ += "<g class=\"legend\">\n";
  const double x = box.x + box.w;
  for (const Label& label : labels) {
    const std::string colour = series_colour(label.series);
    out_ += "<g class=\"key\" data-series=\"" + std::to_string(label.series) + "\">";
    out_ += "<path d=\"M" + xy(x + 5, label.from) + "L" + xy(x + 17, label.at) + "\" fill=\"none\" stroke=\"" + colour +
            "\" stroke-width=\"1\"/>\n";
    out_ += marker(label.series, x + 21, label.at, 3.2, "fill=\"" + colour + "\"");
    out_ += text_at(x + 28, label.at + 3.8, fitted(chart_.series[label.series], width - x - 30, 11)) + "</g>\n";
  }
  out_ += "</g>\n";
}

void Drawing::draw_panel(std::size_t index) {
  const ChartPanel& panel = chart_.panels[index];
  const Box& box = boxes_[index];
  const std::string clip = chart_.id + "-clip-" + std::to_string(index);
  out_ += "<g class=\"panel\" data-box=\"" + xy(box.x, box.y) + " " + xy(box.w, box.h) + "\">\n";
  if (!panel.title.empty()) {
    out_ += text_at(box.x, box.y - 15, fitted(panel.title, box.w, 11.5), {.size = 11.5, .bold = true});
  }
  draw_axes(box, index);
  // Markers on an edge are whole: the clip is wider than the panel.
  out_ += "<clipPath id=\"" + escaped(clip) + "\"><rect x=\"" + coordinate(box.x - 7) + "\" y=\"" +
          coordinate(box.y - 7) + "\" width=\"" + coordinate(box.w + 14) + "\" height=\"" + coordinate(box.h + 14) +
          "\"/></clipPath>\n<g clip-path=\"url(#" + escaped(clip) + ")\"><g class=\"marks\">\n";
  draw_guides(box, panel);
  for (const ChartLine& line : panel.lines) {
    out_ += "<g class=\"series\" data-series=\"" + std::to_string(line.series) + "\">\n";
    draw_path(box, line);
    draw_marks(box, line);
    out_ += "</g>\n";
  }
  out_ += "</g></g>\n";
  for (const ChartGuide& guide : panel.guides) {
    if (guide.label.empty() || !chart_.x.fits(guide.x) || chart_.x.place(guide.x) < 0 || chart_.x.place(guide.x) > 1)
      continue;
    const double x = x_of(box, guide.x), room = box.x + box.w - x, wide = text_width(guide.label, 9.5) + 4;
    out_ += text_at(room > wide ? x - 3 : x + 3, box.y - 4, guide.label,
                    {.size = 9.5, .anchor = room > wide ? "start" : "end", .fill = "#666", .classes = "guide-label"});
  }
  if (direct_) draw_labels(box, panel);
  out_ += "</g>\n";
}

std::string Drawing::text() {
  const auto axis = [](const ChartAxis& a) {
    return Json(Json::Array{Json(to_text(a.kind)), Json(a.low), Json(a.high)});
  };
  Json data = Json::object();
  data["x"] = axis(chart_.x);
  data["y"] = axis(chart_.y);
  out_ = svg_head(width, height_, chart_.id, "data-chart=\"" + escaped(data.canonical()) + "\" role=\"img\"");
  draw_legend();
  for (std::size_t i = 0; i < chart_.panels.size(); ++i) draw_panel(i);
  return out_ + "</svg>\n";
}

}  // namespace

std::string series_colour(std::size_t series) { return colours[series % colours.size()]; }

std::string svg(const Chart& chart) { return Drawing(chart).text(); }

}  // namespace phasor::analysis
