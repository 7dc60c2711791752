#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/grid.h"
#include "analysis/table.h"

namespace phasor::analysis {

/// How a table is dressed for people.
enum class Dress { terminal, markdown };  // ".9253 +- .2074", "0.9253 ± 0.2074"

/// "sequence_accuracy on test at length 32: mean +- sd (n-1) over 3 seeds at the last evaluation, solved (>= .95)"
std::string title(const Table& table, Dress dress);
/// One line a row, one column a column: the primary number with its spread, what was solved, and marks.
Grid human_grid(const Table& table, Dress dress);
/// What was chosen in each cell; no lines when there was nothing to choose.
Grid chosen_grid(const Table& table);

/// What must be said under every table, as (head, text): the marks, how values were chosen and on which seeds, what
/// became of every trial, builds, ignored and damaged files. Lists longer than 20 are cut, and say so.
std::vector<std::pair<std::string, std::string>> footnotes(const Table& table);

}  // namespace phasor::analysis
