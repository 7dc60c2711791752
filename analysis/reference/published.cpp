#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "analysis/reference/reference.h"
#include "analysis/text.h"
#include "analysis/writers/grid.h"
#include "analysis/writers/human.h"
#include "core/base/error.h"
#include "core/spec/json.h"

namespace phasor::analysis {
namespace {

/// What a label of ours is called there: itself, unless the list says otherwise.
std::string called(const Json& redone, const char* list, const std::string& label) {
  const Json* names = redone.find(list);
  const Json* name = names == nullptr ? nullptr : names->find(label);
  return name == nullptr ? label : name->as_string();
}

/// The published column that corresponds to a column of ours.
std::optional<std::size_t> column_of(const Reference& reference, const Json& redone, const std::string& label) {
  const Json* one = redone.find("column");
  const std::string name = one != nullptr ? one->as_string() : called(redone, "columns", label);
  for (std::size_t i = 0; i < reference.columns().size(); ++i) {
    if (reference.columns()[i].name == name) return i;
  }
  return std::nullopt;
}

/// The published row: its last label is ours, its first is what the column's label is called as a model, where that is said.
const Reference::Row* row_of(const Reference& reference, const Json& redone, const std::string& row, const std::string& column) {
  const Json* models = redone.find("models");
  const Json* model = models == nullptr ? nullptr : models->find(column);
  const std::string encoding = called(redone, "rows", row);
  for (const bool exactly : {true, false}) {
    for (const Reference::Row& one : reference.rows()) {
      const std::string& last = one.labels.back();
      const bool same = exactly ? last == encoding : last.ends_with(" " + encoding);
      if (same && (model == nullptr || one.labels.front() == model->as_string())) return &one;
    }
  }
  return nullptr;
}

std::vector<std::string> names_of(const Table& table, const std::string& role) {
  std::vector<std::string> names;
  for (const results::ManifestAxis& axis : table.axes) {
    if (axis.role == role) names.push_back(axis.name);
  }
  return names;
}

/// Ours in the published unit, beside the published number.
Grid side_by_side(const Table& table, const Reference& reference, const Json& redone) {
  const std::size_t primary = primary_of(table);
  Grid grid;
  for (const char* role : {"row", "column"}) grid.add(names_of(table, role));
  grid.add_numeric({"ours", "sd", "n", "published", "difference"});
  grid.add({"unit", "published_row", "published_column"});
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      const std::string of_row = join(table.rows[row], " / "), of_column = join(table.columns[column], " / ");
      const std::optional<std::size_t> at = column_of(reference, redone, of_column);
      const Reference::Row* published = at ? row_of(reference, redone, of_row, of_column) : nullptr;
      if (published == nullptr) continue;
      const Reference::Column& there = reference.columns()[*at];
      const double factor = there.unit == "percent" ? 100.0 : 1.0;
      const Number& number = table.cell(row, column).numbers[primary];
      const auto scaled = [&](std::optional<double> value) { return value ? std::optional(factor * *value) : value; };
      const std::optional<double> ours = scaled(number.statistics.mean);
      std::vector<std::string> line = table.rows[row];
      line.insert(line.end(), table.columns[column].begin(), table.columns[column].end());
      const double theirs = published->values[*at];
      line.insert(line.end(), {ours ? digits(*ours) : not_available, digits(scaled(number.statistics.sd)), std::to_string(number.counts.finite),
                               fixed(theirs, there.decimals), ours ? digits(*ours - theirs) : "", there.unit,
                               join(published->labels, " / "), there.name});
      grid.lines.push_back(std::move(line));
    }
  }
  return grid;
}

std::string written(const std::string& name, const std::string& title, const Grid& grid, const Footnotes& notes, Format format) {
  std::string text;
  switch (format) {
    case Format::csv:
      return csv(grid);
    case Format::json:
      return json_of(name, title, grid, notes);
    case Format::markdown:
      return "## " + name + "\n\n" + title + "\n\n" + markdown(grid) + "\n" + markdown_notes(notes);
    case Format::latex:
      return "% " + name + ", made by phasor table; needs \\usepackage{booktabs}\n" + latex(latex_escaped(grid)) + "\n" + latex_escaped(title) + "\n" + latex_notes(notes);
    case Format::terminal:
      return title + "\n\n" + aligned(grid) + "\n" + terminal_notes(notes);
  }
  throw InternalError("unknown format of a table");
}

/// The published table that a sweep redoes, or the one of that name.
Reference reference_for(const Table& table, const std::string& name) {
  if (name != "paper") return find_reference(name);
  for (Reference& reference : all_references()) {
    if (reference.redone_by(table.name) != nullptr) return std::move(reference);
  }
  throw UserError("--compare paper: no published table says that " + table.name + " redoes it; name one, such as table1");
}

}  // namespace

std::string render(const Reference& reference, Format format) {
  return written(reference.name(), reference.title(), reference.grid(), reference.footnotes(), format);
}

std::string compare(const Table& table, const std::string& name, Format format) {
  const Reference reference = reference_for(table, name);
  const Json* redone = reference.redone_by(table.name);
  const Json as_named = Json::object();
  const Grid grid = side_by_side(table, reference, redone == nullptr ? as_named : *redone);
  if (grid.lines.empty()) {
    throw UserError("--compare " + name + ": no row and column of " + table.name + " is called as in " + reference.name() +
                    "; its columns are " + [&] {
                      std::vector<std::string> names;
                      for (const Reference::Column& column : reference.columns()) names.push_back(column.name);
                      return join(names, ", ");
                    }());
  }
  Footnotes notes = {{"ours", title(table, Dress::markdown)}};
  if (redone != nullptr && redone->find("note") != nullptr) notes.emplace_back("differs", redone->find("note")->as_string());
  for (auto& note : reference.footnotes()) notes.push_back(std::move(note));
  return written(table.name, "ours beside " + reference.title(), grid, notes, format);
}

}  // namespace phasor::analysis
