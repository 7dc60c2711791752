#include "analysis/writers/grid.h"

#include <set>

#include "analysis/table/comparison.h"
#include "analysis/text.h"
#include "analysis/writers/cost_columns.h"
#include "core/base/error.h"

namespace phasor::analysis {
namespace {

bool chooses(const Table& table) {
  for (const results::ManifestAxis& axis : table.axes) {
    if (axis.role == "select") return true;
  }
  return false;
}

std::vector<std::string> names_of(const Table& table, const std::string& role) {
  std::vector<std::string> heads;
  for (const results::ManifestAxis& axis : table.axes) {
    if (axis.role == role) heads.push_back(axis.name);
  }
  return heads;
}

std::vector<std::string> select_heads(const Table& table) {
  std::vector<std::string> heads;
  for (const results::ManifestAxis& axis : table.axes) {
    if (axis.role == "select") heads.push_back(head_of(axis));
  }
  return heads;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// Every line of every form says by which rule the values were chosen.
const std::vector<std::string> rule_heads = {"select_split",     "select_metric", "select_slice", "select_at",
                                             "select_direction", "select_seeds"};

std::vector<std::string> rule_of(const Table& table) {
  if (!chooses(table)) return std::vector<std::string>(rule_heads.size());
  const SelectRule& rule = *table.spec.select;
  return {rule.series.split, rule.series.metric,      slice_to_text(rule.series.slice),
          to_text(rule.at),  to_text(rule.direction),
          table.confirms ? join(selection_replicates(table.axes), ";") : "same as reported"};
}

/// What was chosen on each select axis: one value, or one for each point of the average axes where they differ.
std::vector<std::string> chosen_labels(const Cell& cell, std::size_t axes) {
  std::vector<std::string> chosen;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    std::vector<std::string> values;
    std::set<std::string> distinct;
    for (const Setting& setting : cell.settings) {
      if (!setting.excluded.empty()) continue;
      values.push_back(setting.choice.chosen ? setting.candidates[*setting.choice.chosen].labels[axis] : not_available);
      distinct.insert(values.back());
    }
    chosen.push_back(values.empty() ? not_available : distinct.size() == 1 ? values.front() : join(values, ";"));
  }
  return chosen;
}

std::string steps_text(const std::vector<std::int64_t>& steps) {
  std::vector<std::string> texts;
  for (const std::int64_t step : steps) texts.push_back(std::to_string(step));
  return join(texts, ";");
}

std::string chosen_steps(const Cell& cell) {
  std::set<std::int64_t> steps;
  for (const Setting& setting : cell.settings) {
    if (!setting.choice.chosen) continue;
    const Candidate& candidate = setting.candidates[*setting.choice.chosen];
    steps.insert(candidate.steps.begin(), candidate.steps.end());
  }
  return steps_text({steps.begin(), steps.end()});
}

std::string count_text(std::int64_t count) { return std::to_string(count); }

const std::vector<std::string> count_heads = {"n", "expected", "diverged", "failed", "missing"};

std::vector<std::string> count_texts(const Counts& counts) {
  return {count_text(counts.finite), count_text(counts.expected), count_text(counts.diverged),
          count_text(counts.failed), count_text(counts.missing)};
}

std::string low_of(const std::optional<Interval>& interval) { return interval ? digits(interval->low) : ""; }
std::string high_of(const std::optional<Interval>& interval) { return interval ? digits(interval->high) : ""; }

const std::vector<std::string> statistics_heads = {"mean", "sd", "half_width", "low", "high", "median", "min", "max"};

std::vector<std::string> statistics_texts(const Number& number) {
  const Statistics& s = number.statistics;
  if (!s.mean) return {not_available, "", "", "", "", "", "", ""};
  return {digits(s.mean),      digits(s.sd),     digits(s.half_width), low_of(s.interval),
          high_of(s.interval), digits(s.median), digits(s.min),        digits(s.max)};
}

/// After `baseline`.
const std::vector<std::string> difference_heads = {"diff", "diff_low", "diff_high", "pairs", "p", "p_holm"};

std::vector<std::string> difference_texts(const Number& number) {
  if (!number.difference) return {"", "", "", "", "", "", ""};
  const Difference& d = *number.difference;
  return {d.baseline, digits(d.mean), low_of(d.interval), high_of(d.interval), count_text(d.pairs), digits(d.p), digits(d.p_holm)};
}

/// Of the row's step, of that of its baseline.
std::string step_ratio(const Table& table, std::size_t row, std::size_t column) {
  const std::optional<double> ratio = step_against_baseline(table, row, column);
  return ratio ? fixed(*ratio, 2) : "";
}

std::string solved_text(const Number& number) { return number.solved ? count_text(*number.solved) : std::string(); }

Grid checked(Grid grid) {
  std::set<std::string> seen;
  for (const std::string& head : grid.heads) {
    if (!seen.insert(head).second) {
      throw UserError("table: two columns are named \"" + head + "\"; rename the axis of that name");
    }
  }
  return grid;
}

}  // namespace

void Grid::add(const std::vector<std::string>& names) { append(heads, names); }

void Grid::add_numeric(const std::vector<std::string>& names) {
  append(heads, names);
  numeric.insert(names.begin(), names.end());
}

Grid long_grid(const Table& table) {
  const std::vector<std::string> selects = select_heads(table);
  Grid grid;
  for (const char* role : {"row", "column"}) grid.add(names_of(table, role));
  grid.add({"metric", "split", "slice"});
  grid.add(selects);
  grid.add_numeric(count_heads);
  grid.add_numeric(statistics_heads);
  grid.add_numeric({"solved", "solved_low", "solved_high"});
  grid.add({"baseline"});
  grid.add_numeric(difference_heads);
  grid.add_numeric({"parameters", "step_ms", "step_ratio", "spikes", "clipped_share", "trials"});
  grid.add_numeric(cost_heads());
  grid.add({"flags"});
  grid.add_numeric({"tied"});
  grid.add(rule_heads);
  grid.add({"select_step"});
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      const Cell& cell = table.cell(row, column);
      for (const Number& number : cell.numbers) {
        std::vector<std::string> line = table.rows[row];
        append(line, table.columns[column]);
        append(line, {number.series.metric, number.series.split, slice_to_text(number.series.slice)});
        append(line, chosen_labels(cell, selects.size()));
        append(line, count_texts(number.counts));
        append(line, statistics_texts(number));
        append(line, {solved_text(number), low_of(number.solved_share), high_of(number.solved_share)});
        append(line, difference_texts(number));
        append(line, {cell.parameters > 0 ? count_text(cell.parameters) : "", cell.step_ms ? fixed(*cell.step_ms, 1) : "",
                      step_ratio(table, row, column), digits(cell.spikes), digits(cell.clipped_share),
                      count_text(cell.trials)});
        append(line, cost_texts(table, row, column));
        append(line, {join(number.flags, ";"), selects.empty() ? "" : count_text(cell.tied())});
        append(line, rule_of(table));
        line.push_back(chosen_steps(cell));
        grid.lines.push_back(std::move(line));
      }
    }
  }
  return checked(std::move(grid));
}

Grid wide_grid(const Table& table) {
  const std::vector<std::string> selects = select_heads(table);
  const std::size_t primary = primary_of(table);
  Grid grid;
  grid.add(names_of(table, "row"));
  for (const std::vector<std::string>& labels : table.columns) {
    const std::string prefix = labels.empty() ? "" : join(labels, "/") + ".";
    for (const char* head : {"mean", "sd", "n", "solved"}) grid.add_numeric({prefix + head});
    for (const std::string& head : selects) grid.add({prefix + head});
    grid.add({prefix + "flags"});
    for (const char* head : {"parameters", "step_ms", "step_ratio"}) grid.add_numeric({prefix + head});
    for (const std::string& head : cost_heads()) grid.add_numeric({prefix + head});
  }
  grid.add({"metric", "split", "slice"});
  grid.add(rule_heads);
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    std::vector<std::string> line = table.rows[row];
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      const Cell& cell = table.cell(row, column);
      const Number& number = cell.numbers[primary];
      const std::vector<std::string> statistics = statistics_texts(number);
      append(line, {statistics[0], statistics[1], count_text(number.counts.finite), solved_text(number)});
      append(line, chosen_labels(cell, selects.size()));
      line.push_back(join(number.flags, ";"));
      append(line, {cell.parameters > 0 ? count_text(cell.parameters) : "", cell.step_ms ? fixed(*cell.step_ms, 1) : "",
                    step_ratio(table, row, column)});
      append(line, cost_texts(table, row, column));
    }
    const Series& series = table.spec.primary;
    append(line, {series.metric, series.split, slice_to_text(series.slice)});
    append(line, rule_of(table));
    grid.lines.push_back(std::move(line));
  }
  return checked(std::move(grid));
}

Grid trials_grid(const Table& table) {
  Grid grid;
  for (const results::ManifestAxis& axis : table.axes) {
    grid.add({axis.role == "select" || axis.role == "replicate" ? head_of(axis) : axis.name});
  }
  grid.add(table.varied);
  if (table.confirms) grid.add({"phase"});
  grid.add({"status", "message"});
  for (const Series& series : table.spec.report) grid.add_numeric({to_text(series)});
  grid.add_numeric({"select_value", "select_step"});
  grid.add({"chosen"});
  grid.add_numeric({"steps_to_solve", "step_ms", "spikes", "clipped_share", "parameters"});
  grid.add({"id", "file"});
  grid.add(rule_heads);
  const auto text = [](const std::optional<double>& value) { return value ? shortest(*value) : std::string(); };
  for (const TrialLine& trial : table.trials) {
    std::vector<std::string> line;
    for (std::size_t i = 0; i < table.axes.size(); ++i) {
      line.push_back(table.axes[i].labels[static_cast<std::size_t>(trial.at[i])]);
    }
    append(line, trial.varied);
    if (table.confirms) line.push_back(trial.fresh ? "confirm" : "select");
    append(line, {to_text(trial.status), trial.message});
    for (const std::optional<double>& value : trial.reported) line.push_back(text(value));
    append(line, {trial.selected ? shortest(trial.selected->value) : "",
                  trial.selected ? std::to_string(trial.selected->step) : "",
                  trial.status == TrialStatus::excluded ? "" : trial.chosen ? "yes" : "no", text(trial.steps_to_solve),
                  text(trial.step_ms), text(trial.spikes), text(trial.clipped_share),
                  trial.parameters > 0 ? count_text(trial.parameters) : "", trial.id, trial.file});
    append(line, rule_of(table));
    grid.lines.push_back(std::move(line));
  }
  return checked(std::move(grid));
}

Grid candidates_grid(const Table& table) {
  Grid grid;
  for (const char* role : {"row", "column", "average"}) grid.add(names_of(table, role));
  grid.add(select_heads(table));
  grid.add_numeric(count_heads);
  grid.add({"eligible", "chosen"});
  grid.add_numeric({"tied", "score"});
  grid.add({"select_step"});
  grid.add_numeric({"spikes", "clipped_share"});
  grid.add(rule_heads);
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      for (const Setting& setting : table.cell(row, column).settings) {
        for (const Candidate& candidate : setting.candidates) {
          std::vector<std::string> line = table.rows[row];
          append(line, table.columns[column]);
          append(line, setting.labels);
          append(line, candidate.labels);
          append(line, count_texts(candidate.counts));
          append(line, {candidate.counts.whole() ? "yes" : "no", candidate.chosen ? "yes" : "no",
                        candidate.chosen ? count_text(setting.choice.tied) : "", digits(candidate.score),
                        steps_text(candidate.steps), digits(candidate.spikes), digits(candidate.clipped_share)});
          append(line, rule_of(table));
          grid.lines.push_back(std::move(line));
        }
      }
    }
  }
  return checked(std::move(grid));
}

}  // namespace phasor::analysis
