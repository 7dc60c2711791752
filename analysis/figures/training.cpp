// Figures of what happened in training: loss and evaluations against steps, and how the choice of a rate mattered.
#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/figures/parts.h"
#include "analysis/text.h"

namespace phasor::analysis {
namespace {

constexpr std::size_t most_bins = 60;

/// Means of the losses of a trial over spans of steps, each of the same number of steps; infinite where one of them is
/// not finite.
std::vector<double> binned(const std::vector<results::StepLog>& steps, std::int64_t last, std::size_t bins) {
  std::vector<double> sums(bins, 0.0), counts(bins, 0.0);
  for (const results::StepLog& step : steps) {
    const auto bin = std::min(
        static_cast<std::size_t>((step.step - 1) * static_cast<std::int64_t>(bins) / std::max<std::int64_t>(last, 1)),
        bins - 1);
    sums[bin] += step.loss;
    counts[bin] += 1.0;
  }
  for (std::size_t i = 0; i < bins; ++i) sums[i] /= counts[i];  // NaN without a step
  return sums;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// One point with its band, from the values of several trials; nothing when none is finite.
void add_spread(ChartLine& line, double x, std::vector<double> values, const std::string& tip) {
  std::erase_if(values, [](double v) { return !std::isfinite(v); });
  if (values.empty()) return;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  std::string text = tip + ": " + digits(median_of(values));
  if (values.size() > 1)
    text += " (" + digits(*low) + " to " + digits(*high) + ", n=" + std::to_string(values.size()) + ")";
  line.points.push_back({x, median_of(values), text});
  if (values.size() > 1) line.band.push_back({x, *low, *high});
}

ChartAxis step_axis(double last) {
  ChartAxis axis;
  axis.label = "step";
  axis.low = 0.0;
  axis.high = last;
  axis.whole = true;
  return axis;
}

/// The select axis of numbers that is drawn, as (axis, which of the select axes).
std::optional<std::pair<std::size_t, std::size_t>> numeric_select(const Table& table) {
  std::size_t select = 0;
  for (std::size_t i = 0; i < table.axes.size(); ++i) {
    const results::ManifestAxis& axis = table.axes[i];
    if (axis.role != "select") continue;
    const bool numbers = axis.values.size() > 1 && std::all_of(axis.values.begin(), axis.values.end(),
                                                               [](const Json& v) { return v.is_number(); });
    if (numbers) return std::pair(i, select);
    ++select;
  }
  return std::nullopt;
}

/// Scores of a cell at one value of the axis: the best over other select axes, the mean over settings; nothing when a
/// setting has none.
std::optional<double> score_at(const Cell& cell, std::size_t select, const std::string& label, bool more) {
  std::vector<double> scores;
  for (const Setting& setting : cell.settings) {
    if (!setting.excluded.empty()) continue;
    std::optional<double> best;
    for (const Candidate& candidate : setting.candidates) {
      if (candidate.labels[select] != label || !candidate.counts.whole() || !candidate.score) continue;
      if (!best || (more ? *candidate.score > *best : *candidate.score < *best)) best = candidate.score;
    }
    if (!best) return std::nullopt;
    scores.push_back(*best);
  }
  return describe(scores).mean;
}

ChartLine sensitivity_line(const FigureParts& parts, std::size_t row, std::size_t column, std::size_t axis,
                           std::size_t select, bool more) {
  const Table& table = parts.table;
  const Cell& cell = table.cell(row, column);
  ChartLine line;
  line.series = row;
  std::vector<std::size_t> order(table.axes[axis].values.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto value_of = [&](std::size_t point) { return table.axes[axis].values[point].as_number(); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return value_of(a) < value_of(b); });
  for (const std::size_t point : order) {
    const std::string& label = table.axes[axis].labels[point];
    const std::string name = parts.rows[row] + ", " + table.axes[axis].name + " " + label;
    const std::optional<double> score = score_at(cell, select, label, more);
    line.points.push_back({value_of(point), score.value_or(NAN), name + ": mean " + digits(score)});
    const bool single = cell.settings.size() == 1 && cell.settings.front().choice.chosen;
    if (single && score &&
        cell.settings.front().candidates[*cell.settings.front().choice.chosen].labels[select] == label) {
      line.rings.push_back({value_of(point), *score, ""});
    }
  }
  for (const TrialLine& trial : table.trials) {
    if (trial.fresh || parts.row_of(trial.at) != row || parts.column_of(trial.at) != column) continue;
    const double x = value_of(static_cast<std::size_t>(trial.at[axis]));
    const bool ended =
        trial.status == TrialStatus::done || trial.status == TrialStatus::diverged || is_failure(trial.status);
    if (trial.status == TrialStatus::done && trial.selected && std::isfinite(trial.selected->value)) {
      line.dots.push_back({x, trial.selected->value, trial.name + ": " + digits(trial.selected->value)});
    } else if (ended) {
      line.crosses.push_back({x, 0.0, trial.name + ": " + to_text(trial.status)});
    }
  }
  return line;
}

}  // namespace

void add_curves(const FigureParts& parts, std::vector<Figure>& figures) {
  std::map<std::string, const results::TrialRecord*> records;
  for (const results::TrialRecord& record : parts.folder.records) records[record.id] = &record;
  const auto record_of = [&](std::size_t trial) {
    const auto found = records.find(parts.table.trials[trial].id);
    return found == records.end() ? nullptr : found->second;
  };
  std::int64_t last = 0;
  std::size_t logged = 0;
  for (std::size_t row = 0; row < parts.rows.size(); ++row) {
    for (std::size_t column = 0; column < parts.panels(); ++column) {
      for (const std::size_t trial : parts.reported(row, column)) {
        const results::TrialRecord* record = record_of(trial);
        if (record == nullptr || record->steps.size() < 2) continue;
        last = std::max(last, record->steps.back().step);
        logged = std::max(logged, record->steps.size());
      }
    }
  }
  if (last == 0) return;
  const std::size_t bins = std::min(most_bins, logged);
  Chart chart = parts.chart("curves");
  chart.x = step_axis(static_cast<double>(last));
  chart.y.label = "training loss (nats)";
  chart.y.kind = AxisKind::log10;
  chart.more_is_better = false;
  for (std::size_t column = 0; column < parts.panels(); ++column) {
    ChartPanel panel;
    panel.title = parts.columns[column];
    for (std::size_t row = 0; row < parts.rows.size(); ++row) {
      std::vector<std::vector<double>> curves;
      for (const std::size_t trial : parts.reported(row, column)) {
        if (const auto* record = record_of(trial); record != nullptr && !record->steps.empty())
          curves.push_back(binned(record->steps, last, bins));
      }
      ChartLine line;
      line.series = row;
      line.markers = false;
      for (std::size_t bin = 0; bin < bins; ++bin) {
        std::vector<double> values;
        for (const std::vector<double>& curve : curves) values.push_back(curve[bin]);
        const double x = static_cast<double>(last) * (static_cast<double>(bin) + 0.5) / static_cast<double>(bins);
        add_spread(line, x, values, parts.rows[row] + ", about step " + grouped(std::llround(x)));
      }
      panel.lines.push_back(std::move(line));
    }
    chart.panels.push_back(std::move(panel));
  }
  figures.push_back({"curves", "Learning curves",
                     "Training loss of the trials that the table reports, means over " + std::to_string(bins) +
                         " equal spans of steps. Lines are medians over " + parts.seeds() +
                         ", bands reach from the lowest to the highest." + parts.left_out(parts.primary),
                     svg(chart)});
}

void add_progress(const FigureParts& parts, std::vector<Figure>& figures) {
  const Series series = parts.table.spec.select ? parts.table.spec.select->series : parts.table.spec.primary;
  Chart chart = parts.chart("progress");
  chart.y = axis_of(series.metric);
  chart.more_is_better = more_is_better(series.metric);
  double last = 0.0;
  std::size_t longest = 0;
  for (std::size_t column = 0; column < parts.panels(); ++column) {
    ChartPanel panel;
    panel.title = parts.columns[column];
    for (std::size_t row = 0; row < parts.rows.size(); ++row) {
      std::map<std::int64_t, std::vector<double>> by_step;
      for (const std::size_t trial : parts.reported(row, column)) {
        for (const results::EvalPoint& point : parts.frame.rows[trial].evals) {
          if (point.split == series.split && point.metric == series.metric && point.slice == series.slice)
            by_step[point.step].push_back(point.value);
        }
      }
      ChartLine line;
      line.series = row;
      for (const auto& [step, values] : by_step) {
        add_spread(line, static_cast<double>(step), values, parts.rows[row] + ", step " + grouped(step));
        last = std::max(last, static_cast<double>(step));
      }
      longest = std::max(longest, by_step.size());
      panel.lines.push_back(std::move(line));
    }
    chart.panels.push_back(std::move(panel));
  }
  if (longest < 3) return;
  chart.x = step_axis(last);
  figures.push_back(
      {"progress", "Evaluations while training",
       described(series) + " while training, of the trials that the table reports. Lines are medians over " +
           parts.seeds() + ", bands reach from the lowest to the highest." + parts.left_out(parts.primary),
       svg(chart)});
}

void add_sensitivity(const FigureParts& parts, std::vector<Figure>& figures) {
  const auto found = numeric_select(parts.table);
  if (!found || !parts.table.spec.select) return;
  const auto [axis, select] = *found;
  const Series& series = parts.table.spec.select->series;
  const bool more = parts.table.spec.select->direction == Direction::maximise;
  Chart chart = parts.chart("sensitivity");
  chart.x.label = head_of(parts.table.axes[axis]);
  double least = INFINITY;
  for (const Json& value : parts.table.axes[axis].values) {
    chart.x.at.push_back(value.as_number());
    least = std::min(least, value.as_number());
  }
  chart.x.kind = least > 0 ? AxisKind::log10 : AxisKind::linear;
  chart.y = axis_of(series.metric);
  chart.more_is_better = more;
  bool crosses = false, any = false;
  for (std::size_t column = 0; column < parts.panels(); ++column) {
    ChartPanel panel;
    panel.title = parts.columns[column];
    for (std::size_t row = 0; row < parts.rows.size(); ++row) {
      panel.lines.push_back(sensitivity_line(parts, row, column, axis, select, more));
      crosses = crosses || !panel.lines.back().crosses.empty();
      any = any || !panel.lines.back().dots.empty();
    }
    chart.panels.push_back(std::move(panel));
  }
  if (!any) return;
  figures.push_back({"sensitivity", "How much " + parts.table.axes[axis].name + " matters",
                     described(series) + ", " + to_text(parts.table.spec.select->at) + ", against " +
                         head_of(parts.table.axes[axis]) +
                         ". Dots are single trials, lines means over all replicates where every one gave a number; "
                         "ringed: the choice." +
                         (crosses ? " Crosses: diverged or failed." : ""),
                     svg(chart)});
}

}  // namespace phasor::analysis
