#include <cstddef>

#include "analysis/table/table.h"
#include "analysis/text.h"
#include "analysis/writers/cost_columns.h"
#include "analysis/writers/grid.h"
#include "analysis/writers/human.h"
#include "core/base/error.h"

namespace phasor::analysis {
namespace {

Grid grid_of(const Table& table, Form form) {
  switch (form) {
    case Form::longer:
      return long_grid(table);
    case Form::wide:
      return wide_grid(table);
    case Form::trials:
      return trials_grid(table);
    case Form::candidates:
      return candidates_grid(table);
  }
  throw InternalError("unknown form of a table");
}

std::string terminal(const Table& table) {
  std::string text = title(table, Dress::terminal) + "\n\n" + aligned(human_grid(table, Dress::terminal)) + "\n";
  if (const Grid chosen = chosen_grid(table); !chosen.lines.empty()) text += aligned(chosen) + "\n";
  if (const Grid costs = cost_grid(table); !costs.lines.empty()) text += aligned(costs) + "\n";
  return text + terminal_notes(footnotes(table));
}

std::string markdown_of(const Table& table, Form form) {
  std::string text = "## " + table.name + "\n\n" + title(table, Dress::markdown) + "\n\n";
  if (form == Form::wide) {
    text += markdown(human_grid(table, Dress::markdown)) + "\n";
    if (const Grid chosen = chosen_grid(table); !chosen.lines.empty()) text += markdown(chosen) + "\n";
    if (const Grid costs = cost_grid(table); !costs.lines.empty()) text += markdown(costs) + "\n";
  } else {
    text += markdown(grid_of(table, form)) + "\n";
  }
  return text + markdown_notes(footnotes(table));
}

std::string latex_of(const Table& table, Form form) {
  std::string text = "% " + table.name + ", made by phasor table; needs \\usepackage{booktabs}\n";
  if (form == Form::wide) {
    text += latex(human_grid(table, Dress::latex));
    if (const Grid chosen = chosen_grid(table); !chosen.lines.empty()) text += "\n" + latex(latex_escaped(chosen));
    if (const Grid costs = cost_grid(table); !costs.lines.empty()) text += "\n" + latex(latex_escaped(costs));
    text += "\n" + title(table, Dress::latex) + "\n";
  } else {
    text += latex(latex_escaped(grid_of(table, form)));
  }
  return text + latex_notes(footnotes(table));
}

}  // namespace

std::string render(const Table& table, Format format, Form form) {
  switch (format) {
    case Format::csv:
      return csv(grid_of(table, form));
    case Format::markdown:
      return markdown_of(table, form);
    case Format::latex:
      return latex_of(table, form);
    case Format::json:
      return json_of(table.name, title(table, Dress::markdown), grid_of(table, form), footnotes(table));
    case Format::terminal:
      return terminal(table);
  }
  throw InternalError("unknown format of a table");
}

Format read_format(const std::string& text) {
  if (text == "csv") return Format::csv;
  if (text == "markdown") return Format::markdown;
  if (text == "latex") return Format::latex;
  if (text == "json") return Format::json;
  if (text == "terminal") return Format::terminal;
  throw UserError("--format: found \"" + text + "\", expected csv, markdown, latex, json or terminal");
}

Form read_form(const std::string& text) {
  if (text == "long") return Form::longer;
  if (text == "wide") return Form::wide;
  if (text == "trials") return Form::trials;
  if (text == "candidates") return Form::candidates;
  throw UserError("--form: found \"" + text + "\", expected long, wide, trials or candidates");
}

}  // namespace phasor::analysis
