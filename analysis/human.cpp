#include "analysis/human.h"

#include <algorithm>
#include <set>

#include "analysis/text.h"

namespace phasor::analysis {
namespace {

std::size_t primary_of(const Table& table) {
  const auto found = std::find(table.spec.report.begin(), table.spec.report.end(), table.spec.primary);
  return static_cast<std::size_t>(found - table.spec.report.begin());
}

std::string dressed(const std::string& digits, Dress dress) {
  return dress == Dress::terminal ? short_digits(digits) : digits;
}

bool has_flag(const std::vector<std::string>& flags, const std::string& ending) {
  return std::any_of(flags.begin(), flags.end(), [&](const std::string& flag) { return flag.ends_with(ending); });
}

std::string marks_of(const Cell& cell, const Number& number) {
  std::string marks;
  if (has_flag(number.flags, "_edge")) marks += "e";
  if (cell.tied() > 1) marks += "t" + std::to_string(cell.tied());
  if (has_flag(number.flags, "parameters")) marks += "p";
  if (has_flag(number.flags, "settings_excluded")) marks += "x";
  return marks;
}

/// "n 1 of 3, 1 diverged, 1 missing"
std::string counts_text(const Counts& counts) {
  std::string text = "n " + grouped(counts.finite) + " of " + grouped(counts.expected);
  if (counts.diverged > 0) text += ", " + grouped(counts.diverged) + " diverged";
  if (counts.failed > 0) text += ", " + grouped(counts.failed) + " failed";
  if (counts.missing > 0) text += ", " + grouped(counts.missing) + " missing";
  return text;
}

std::string cell_text(const Cell& cell, const Number& number, Dress dress) {
  if (!cell.excluded.empty()) return "n/a (excluded)";
  const Statistics& s = number.statistics;
  if (!s.mean) return "n/a (" + counts_text(number.counts) + ")";
  std::string text = dressed(digits(s.mean), dress);
  if (s.sd) text += (dress == Dress::terminal ? " +- " : " ± ") + dressed(digits(s.sd), dress);
  text += number.solved ? "  " + std::to_string(*number.solved) + "/" + std::to_string(s.n) : "  n=" + std::to_string(s.n);
  const std::string marks = marks_of(cell, number);
  return marks.empty() ? text : text + " " + marks;
}

bool is_baseline(const Table& table, std::size_t row) {
  const std::vector<std::string>& labels = table.rows[row];
  return !table.spec.baseline.empty() &&
         (join(labels, " / ") == table.spec.baseline ||
          std::find(labels.begin(), labels.end(), table.spec.baseline) != labels.end());
}

std::string parameters_text(const Table& table, std::size_t row) {
  std::int64_t least = 0, most = 0;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    const std::int64_t count = table.cell(row, column).parameters;
    if (count == 0) continue;
    least = least == 0 ? count : std::min(least, count);
    most = std::max(most, count);
  }
  if (most == 0) return "";
  return least == most ? grouped(most) : grouped(least) + "-" + grouped(most);
}

/// Time of a step: as a ratio to the baseline over the columns that have both, or in milliseconds.
std::string step_text(const Table& table, std::size_t row, const std::vector<std::size_t>& baselines) {
  std::vector<double> values;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    const std::optional<double> time = table.cell(row, column).step_ms;
    if (!time) continue;
    if (baselines.size() != 1) {
      values.push_back(*time);
    } else if (const std::optional<double> base = table.cell(baselines.front(), column).step_ms; base && *base > 0) {
      values.push_back(*time / *base);
    }
  }
  if (values.empty()) return "";
  const double mean = *describe(values).mean;
  return baselines.size() == 1 ? fixed(mean, 2) + "x" : fixed(mean, 1) + " ms";
}

/// "seed" where that is the only thing repeated.
std::string replicate_noun(const Table& table) {
  std::vector<std::string> names;
  for (const results::ManifestAxis& axis : table.axes) {
    if (axis.role == "replicate") names.push_back(axis.name);
  }
  return (table.confirms ? "confirm " : "") + (names.size() == 1 ? names.front() : "replicate");
}

std::vector<std::string> row_heads(const Table& table) {
  std::vector<std::string> heads;
  for (const results::ManifestAxis& axis : table.axes) {
    if (axis.role == "row") heads.push_back(axis.name);
  }
  return heads;
}

}  // namespace

std::string title(const Table& table, Dress dress) {
  const Series& series = table.spec.primary;
  std::string text = series.metric + " on " + series.split + " at ";
  text += series.slice < 0 ? "all lengths" : "length " + std::to_string(series.slice);
  text += std::string(": mean ") + (dress == Dress::terminal ? "+-" : "±") + " sd (n-1) over " +
          counted(table.replicates, replicate_noun(table)) + " at the last evaluation";
  if (table.spec.solved_at) {
    const bool more = direction_of(series.metric) == Direction::maximise;
    const std::string limit = shortest(*table.spec.solved_at);
    text += std::string(", solved (") + (more ? ">= " : "<= ") + dressed(limit, dress) + ")";
  }
  return text;
}

Grid human_grid(const Table& table, Dress dress) {
  std::vector<std::size_t> baselines;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    if (is_baseline(table, row)) baselines.push_back(row);
  }
  const std::size_t primary = primary_of(table);
  Grid grid;
  grid.heads = row_heads(table);
  for (const std::vector<std::string>& labels : table.columns) {
    grid.heads.push_back(labels.empty() ? table.spec.primary.metric : join(labels, " / "));
  }
  grid.heads.insert(grid.heads.end(), {"parameters", "step"});
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    std::vector<std::string> line = table.rows[row];
    if (!line.empty() && is_baseline(table, row)) line.back() += " (baseline)";
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      const Cell& cell = table.cell(row, column);
      line.push_back(cell_text(cell, cell.numbers[primary], dress));
    }
    line.push_back(parameters_text(table, row));
    line.push_back(step_text(table, row, baselines));
    grid.lines.push_back(std::move(line));
  }
  return grid;
}

Grid chosen_grid(const Table& table) {
  std::vector<std::string> names;
  for (const results::ManifestAxis& axis : table.axes) {
    if (axis.role == "select") names.push_back(head_of(axis));
  }
  Grid grid;
  if (names.empty()) return grid;
  grid.heads = row_heads(table);
  const std::string chosen = "chosen " + join(names, ", ");
  if (grid.heads.empty()) grid.heads.push_back("");
  grid.heads.back() = chosen;
  for (const std::vector<std::string>& labels : table.columns) {
    grid.heads.push_back(labels.empty() ? table.spec.primary.metric : join(labels, " / "));
  }
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    std::vector<std::string> line = table.rows[row];
    if (line.empty()) line.push_back("");
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      std::vector<std::string> values;
      std::set<std::string> distinct;
      for (const Setting& setting : table.cell(row, column).settings) {
        const bool some = setting.choice.chosen.has_value();
        values.push_back(some ? join(setting.candidates[*setting.choice.chosen].labels, ", ") : "n/a");
        distinct.insert(values.back());
      }
      line.push_back(distinct.size() == 1 ? values.front() : join(values, "; "));
    }
    grid.lines.push_back(std::move(line));
  }
  return grid;
}

}  // namespace phasor::analysis
