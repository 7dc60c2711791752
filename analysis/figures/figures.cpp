#include "analysis/figures/figures.h"

#include <algorithm>
#include <map>

#include "analysis/figures/parts.h"
#include "analysis/text.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace phasor::analysis {
namespace {

std::vector<std::string> joined(const std::vector<std::vector<std::string>>& labels, const std::string& instead) {
  std::vector<std::string> texts;
  for (const std::vector<std::string>& parts : labels) texts.push_back(parts.empty() ? instead : join(parts, " / "));
  return texts;
}

/// The largest number in a value: of a list, its largest.
std::optional<double> largest(const Json& value) {
  if (value.is_number()) return value.as_number();
  std::optional<double> most;
  if (!value.is_array()) return most;
  for (const Json& one : value.as_array()) {
    if (one.is_number() && (!most || one.as_number() > *most)) most = one.as_number();
  }
  return most;
}

const Json* column_of_spec(const FrameRow& row, const std::string& path) {
  const auto found = std::lower_bound(row.columns.begin(), row.columns.end(), path,
                                      [](const auto& c, const std::string& p) { return c.first < p; });
  return found != row.columns.end() && found->first == path ? &found->second : nullptr;
}

/// MQAR cuts its evaluations by the number of pairs; every other task by length.
bool counts_pairs(const FrameRow& row) {
  const Json* name = column_of_spec(row, "task.name");
  return name != nullptr && name->is_string() && name->as_string() == "mqar";
}

constexpr std::pair<const char*, void (*)(const FigureParts&, std::vector<Figure>&)> kinds[] = {
    {"length", add_length_figures}, {"width", add_width_figure}, {"heatmap", add_heatmap},
    {"curves", add_curves},         {"progress", add_progress},  {"sensitivity", add_sensitivity}};

}  // namespace

FigureParts::FigureParts(const FigureSource& source) : frame(source.frame), table(source.table), folder(source.folder) {
  rows = joined(table.rows, table.name);
  columns = joined(table.columns, "");
  const auto found = std::find(table.spec.report.begin(), table.spec.report.end(), table.spec.primary);
  primary = static_cast<std::size_t>(found - table.spec.report.begin());
  reported_.resize(rows.size() * columns.size());
  for (std::size_t i = 0; i < table.trials.size(); ++i) {
    const TrialLine& trial = table.trials[i];
    if (!trial.chosen || trial.status != TrialStatus::done || trial.fresh != table.confirms) continue;
    reported_[row_of(trial.at) * columns.size() + column_of(trial.at)].push_back(i);
  }
}

std::size_t FigureParts::place(const std::vector<std::int64_t>& at, const std::string& role) const {
  std::size_t index = 0;
  for (std::size_t i = 0; i < table.axes.size(); ++i) {
    if (table.axes[i].role == role) index = index * table.axes[i].labels.size() + static_cast<std::size_t>(at[i]);
  }
  return index;
}

std::optional<double> FigureParts::trained_to(std::size_t column) const {
  std::optional<double> agreed;
  for (std::size_t i = 0; i < frame.rows.size(); ++i) {
    const FrameRow& row = frame.rows[i];
    if (!row.has_record() || column_of(row.at) != column) continue;
    const bool pairs = counts_pairs(row);
    std::optional<double> own;
    for (const char* path : {"task.train.longest", "task.train.length", "task.train.lengths", "task.train.pairs"}) {
      if (pairs != (std::string_view(path) == "task.train.pairs")) continue;
      const Json* value = column_of_spec(row, path);
      if (!own && value != nullptr) own = largest(*value);
    }
    if (!own || (agreed && *agreed != *own)) return std::nullopt;
    agreed = own;
  }
  return agreed;
}

std::string FigureParts::slice_noun() const {
  for (const FrameRow& row : frame.rows) {
    if (row.has_record()) return counts_pairs(row) ? "key-value pairs" : "length";
  }
  return "length";
}

Chart FigureParts::chart(const std::string& name) const {
  Chart chart;
  chart.id = "figure-" + name;
  chart.series = rows;
  return chart;
}

std::string FigureParts::left_out(std::size_t number) const {
  std::vector<std::string> cells;
  for (std::size_t column = 0; column < panels(); ++column) {
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (table.cell(row, column).numbers[number].statistics.mean) continue;
      cells.push_back(rows[row] + (columns[column].empty() ? "" : " on " + columns[column]));
    }
  }
  std::string text;
  if (cells.size() > 8) {
    text = " Not drawn: " + counted(static_cast<std::int64_t>(cells.size()), "cell") + " without a number.";
  } else if (!cells.empty()) {
    text = " Not drawn, for want of a number: " + join(cells, ", ") + ".";
  }
  if (columns.size() > panels())
    text +=
        " Only the first " + std::to_string(panels()) + " of " + std::to_string(columns.size()) + " columns are drawn.";
  return text;
}

std::string FigureParts::seeds() const {
  std::string noun = "replicate";
  std::int64_t axes = 0;
  for (const results::ManifestAxis& axis : table.axes) {
    if (axis.role != "replicate") continue;
    noun = ++axes == 1 ? axis.name : "replicate";
  }
  return counted(table.replicates, (table.confirms ? "fresh " : "") + noun);
}

ChartAxis axis_of(const std::string& metric) {
  ChartAxis axis;
  axis.label = spoken(metric);
  if (more_is_better(metric)) axis.high = 1.0;  // accuracies
  return axis;
}

bool more_is_better(const std::string& metric) { return direction_of(metric) == Direction::maximise; }

std::string spoken(const std::string& metric) {
  std::string text = metric;
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::vector<Figure> figures(const FigureSource& source) {
  const FigureParts parts(source);
  std::vector<Figure> made;
  for (const auto& [name, add] : kinds) add(parts, made);
  return made;
}

std::vector<Figure> figures_named(const FigureSource& source, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [known, add] : kinds) {
    names.emplace_back(known);
    if (name != known) continue;
    std::vector<Figure> made;
    add(FigureParts(source), made);
    if (made.empty())
      throw UserError("--figure " + name +
                      ": this sweep has nothing to show in it; docs/report.md says what each figure needs");
    return made;
  }
  names.emplace_back("spectra");
  throw UserError("--figure: found \"" + name + "\", expected " + quoted_list(names) + " (spectra of a checkpoint, the others of a sweep)");
}

}  // namespace phasor::analysis
