#include "analysis/grid.h"

#include <set>

#include "analysis/text.h"
#include "core/base/error.h"

namespace phasor::analysis {
namespace {

const std::string not_available = "n/a";

bool chooses(const Table& table) {
  for (const results::ManifestAxis& axis : table.axes) {
    if (axis.role == "select") return true;
  }
  return false;
}

void add_names(const Table& table, const std::string& role, std::vector<std::string>& heads) {
  for (const results::ManifestAxis& axis : table.axes) {
    if (axis.role == role) heads.push_back(axis.name);
  }
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

std::vector<std::string> count_texts(const Counts& counts) {
  return {count_text(counts.finite), count_text(counts.expected), count_text(counts.diverged),
          count_text(counts.failed), count_text(counts.missing)};
}

std::vector<std::string> statistics_texts(const Number& number) {
  const Statistics& s = number.statistics;
  if (!s.mean) return {not_available, "", "", "", "", ""};
  return {digits(s.mean), digits(s.sd), digits(s.half_width), digits(s.median), digits(s.min), digits(s.max)};
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

std::size_t number_of_primary(const Table& table) {
  for (std::size_t i = 0; i < table.spec.report.size(); ++i) {
    if (table.spec.report[i] == table.spec.primary) return i;
  }
  throw InternalError("the primary metric is not reported");
}

}  // namespace

Grid long_grid(const Table& table) {
  const std::vector<std::string> selects = select_heads(table);
  Grid grid;
  add_names(table, "row", grid.heads);
  add_names(table, "column", grid.heads);
  append(grid.heads, {"metric", "split", "slice"});
  append(grid.heads, selects);
  append(grid.heads, {"n", "expected", "diverged", "failed", "missing", "mean", "sd", "half_width", "median", "min", "max", "solved",
                      "parameters", "step_ms", "trials", "flags", "tied"});
  append(grid.heads, rule_heads);
  grid.heads.push_back("select_step");
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
        append(line, {solved_text(number), cell.parameters > 0 ? count_text(cell.parameters) : "",
                      cell.step_ms ? fixed(*cell.step_ms, 1) : "", count_text(cell.trials), join(number.flags, ";"),
                      selects.empty() ? "" : count_text(cell.tied())});
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
  const std::size_t primary = number_of_primary(table);
  Grid grid;
  add_names(table, "row", grid.heads);
  for (const std::vector<std::string>& labels : table.columns) {
    const std::string prefix = labels.empty() ? "" : join(labels, "/") + ".";
    for (const char* head : {"mean", "sd", "n", "solved"}) grid.heads.push_back(prefix + head);
    for (const std::string& head : selects) grid.heads.push_back(prefix + head);
    grid.heads.push_back(prefix + "flags");
  }
  append(grid.heads, {"metric", "split", "slice"});
  append(grid.heads, rule_heads);
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    std::vector<std::string> line = table.rows[row];
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      const Cell& cell = table.cell(row, column);
      const Number& number = cell.numbers[primary];
      const std::vector<std::string> statistics = statistics_texts(number);
      append(line, {statistics[0], statistics[1], count_text(number.counts.finite), solved_text(number)});
      append(line, chosen_labels(cell, selects.size()));
      line.push_back(join(number.flags, ";"));
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
    grid.heads.push_back(axis.role == "select" || axis.role == "replicate" ? head_of(axis) : axis.name);
  }
  append(grid.heads, table.varied);
  if (table.confirms) grid.heads.push_back("phase");
  append(grid.heads, {"status", "message"});
  for (const Series& series : table.spec.report) grid.heads.push_back(to_text(series));
  append(grid.heads, {"select_value", "select_step", "chosen", "steps_to_solve", "step_ms", "parameters", "id", "file"});
  append(grid.heads, rule_heads);
  for (const TrialLine& trial : table.trials) {
    std::vector<std::string> line;
    for (std::size_t i = 0; i < table.axes.size(); ++i) {
      line.push_back(table.axes[i].labels[static_cast<std::size_t>(trial.at[i])]);
    }
    append(line, trial.varied);
    if (table.confirms) line.push_back(trial.fresh ? "confirm" : "select");
    append(line, {to_text(trial.status), trial.message});
    for (const std::optional<double>& value : trial.reported) line.push_back(value ? shortest(*value) : "");
    append(line, {trial.selected ? shortest(trial.selected->value) : "",
                  trial.selected ? std::to_string(trial.selected->step) : "",
                  trial.status == TrialStatus::excluded ? "" : trial.chosen ? "yes" : "no",
                  trial.steps_to_solve ? shortest(*trial.steps_to_solve) : "",
                  trial.step_ms ? shortest(*trial.step_ms) : "",
                  trial.parameters > 0 ? count_text(trial.parameters) : "", trial.id, trial.file});
    append(line, rule_of(table));
    grid.lines.push_back(std::move(line));
  }
  return checked(std::move(grid));
}

Grid candidates_grid(const Table& table) {
  Grid grid;
  for (const char* role : {"row", "column", "average"}) add_names(table, role, grid.heads);
  append(grid.heads, select_heads(table));
  append(grid.heads, {"n", "expected", "diverged", "failed", "missing", "eligible", "chosen", "tied", "score",
                      "select_step"});
  append(grid.heads, rule_heads);
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
                        steps_text(candidate.steps)});
          append(line, rule_of(table));
          grid.lines.push_back(std::move(line));
        }
      }
    }
  }
  return checked(std::move(grid));
}

}  // namespace phasor::analysis
