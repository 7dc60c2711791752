#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/table/table.h"
#include "analysis/writers/grid.h"

namespace phasor::analysis {

/// How a table is dressed for people.
enum class Dress { terminal, markdown, latex, page };  // ".9253 +- .2074", "0.9253 ± 0.2074", "0.9253 $\pm$ 0.2074"; as markdown, not bold

/// "sequence_accuracy on test at length 32: mean +- sd (n-1) over 3 seeds at the last evaluation, solved (>= .95)"
std::string title(const Table& table, Dress dress);
/// One line a row, one column a column: the primary number with its spread, what was solved, and marks. The best of a column is
/// in bold where it holds (`Number::best`).
Grid human_grid(const Table& table, Dress dress);
/// What was chosen in each cell; no lines when there was nothing to choose.
Grid chosen_grid(const Table& table);

/// What stands under a table, as (head, text). An empty head goes on with the one before.
using Footnotes = std::vector<std::pair<std::string, std::string>>;

/// What must be said under every table: the test, the marks, how values were chosen and on which seeds, what became of every
/// trial, builds, ignored and damaged files. Lists longer than 20 are cut, and say so.
Footnotes footnotes(const Table& table);

std::string terminal_notes(const Footnotes& notes);
std::string markdown_notes(const Footnotes& notes);  // a list; what continues the one before is indented
std::string latex_notes(const Footnotes& notes);
/// One object: name, title, the lines of the grid, notes.
std::string json_of(const std::string& name, const std::string& title, const Grid& grid, const Footnotes& notes);

}  // namespace phasor::analysis
