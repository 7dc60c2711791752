#include "analysis/writers/human.h"

#include <algorithm>
#include <set>

#include "analysis/table/comparison.h"
#include "analysis/text.h"

namespace phasor::analysis {
namespace {

std::string dressed(const std::string& digits, Dress dress) {
  return dress == Dress::terminal ? short_digits(digits) : digits;
}

bool has_flag(const std::vector<std::string>& flags, const std::string& ending) {
  return std::any_of(flags.begin(), flags.end(), [&](const std::string& flag) { return flag.ends_with(ending); });
}

const char* plus_minus(Dress dress) {
  switch (dress) {
    case Dress::terminal:
      return "+-";
    case Dress::markdown:
    case Dress::page:
      return "±";
    case Dress::latex:
      return "$\\pm$";
  }
  return "";
}

std::string strong(const std::string& text, Dress dress) {
  if (dress == Dress::terminal || dress == Dress::page) return text;
  return dress == Dress::markdown ? "**" + text + "**" : "\\textbf{" + text + "}";
}

/// A label or a sentence, which has no commands.
std::string plain(const std::string& text, Dress dress) { return dress == Dress::latex ? latex_escaped(text) : text; }

std::vector<std::string> plain(std::vector<std::string> texts, Dress dress) {
  for (std::string& text : texts) text = plain(text, dress);
  return texts;
}

std::string marks_of(const Cell& cell, const Number& number) {
  std::string marks;
  if (number.differs()) marks += "*";
  if (has_flag(number.flags, "bimodal")) marks += "b";
  if (has_flag(number.flags, "_edge")) marks += "e";
  if (cell.tied() > 1) marks += "t" + std::to_string(cell.tied());
  if (has_flag(number.flags, "parameters")) marks += "p";
  if (has_flag(number.flags, "budget")) marks += "u";
  if (has_flag(number.flags, "floor")) marks += "f";
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
  if (s.sd) text += std::string(" ") + plus_minus(dress) + " " + dressed(digits(s.sd), dress);
  if (number.best) text = strong(text, dress);
  text += number.solved ? "  " + std::to_string(*number.solved) + "/" + std::to_string(s.n) : "  n=" + std::to_string(s.n);
  const std::string marks = marks_of(cell, number);
  return marks.empty() ? text : text + " " + marks;
}

bool is_baseline(const Table& table, std::size_t row) { return baseline_of(table, row) == row; }

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
std::string step_text(const Table& table, std::size_t row) {
  const bool relative = baseline_of(table, row).has_value();
  std::vector<double> values;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    const std::optional<double> value = relative ? step_against_baseline(table, row, column) : table.cell(row, column).step_ms;
    if (value) values.push_back(*value);
  }
  if (values.empty()) return "";
  const double mean = *describe(values).mean;
  return relative ? fixed(mean, 2) + "x" : fixed(mean, 1) + " ms";
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
  text = plain(text, dress) + ": mean " + plus_minus(dress) + " sd (n-1) over " +
          counted(table.replicates, replicate_noun(table)) + " at the last evaluation";
  if (table.spec.solved_at) {
    const bool more = direction_of(series.metric) == Direction::maximise;
    const std::string limit = shortest(*table.spec.solved_at);
    text += ", solved (" + plain(more ? ">= " : "<= ", dress) + dressed(limit, dress) + ")";
  }
  return text;
}

Grid human_grid(const Table& table, Dress dress) {
  const std::size_t primary = primary_of(table);
  Grid grid;
  grid.add(plain(row_heads(table), dress));
  for (const std::vector<std::string>& labels : table.columns) {
    grid.add({plain(labels.empty() ? table.spec.primary.metric : join(labels, " / "), dress)});
  }
  grid.add({"parameters", "step"});
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    std::vector<std::string> line = plain(table.rows[row], dress);
    if (!line.empty() && is_baseline(table, row)) line.back() += " (baseline)";
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      const Cell& cell = table.cell(row, column);
      line.push_back(cell_text(cell, cell.numbers[primary], dress));
    }
    line.push_back(parameters_text(table, row));
    line.push_back(step_text(table, row));
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
