#pragma once

#include <set>
#include <string>
#include <vector>

#include "analysis/table/table.h"

namespace phasor::analysis {

/// Lines of equal length under column heads: what CSV and Markdown write.
struct Grid {
  std::vector<std::string> heads;
  std::vector<std::vector<std::string>> lines;
  std::set<std::string> numeric;  // heads of columns of numbers, where a field may be empty or not available

  void add(const std::vector<std::string>& names);
  void add_numeric(const std::vector<std::string>& names);
};

/// Stands where there is no number to give, and everyone's reader knows it.
inline const std::string not_available = "NA";

/// The forms of a table, column by column in tables.md. UserError when an axis has the name of another column.
Grid long_grid(const Table& table);
Grid wide_grid(const Table& table);
Grid trials_grid(const Table& table);
Grid candidates_grid(const Table& table);

std::string csv(const Grid& grid);       // RFC 4180 quoting, lines end in \n
std::string markdown(const Grid& grid);  // a pipe table
std::string latex(const Grid& grid);     // a tabular with the rules of booktabs; fields are LaTeX already
Grid latex_escaped(Grid grid);           // every head and field, with `latex_escaped`
/// A list of objects, a line each, by head. Fields of numeric columns are numbers with the same digits, null where there is
/// none, and "nan", "inf", "-inf"; all others are texts.
std::string json(const Grid& grid);
/// Columns aligned with spaces, three between them.
std::string aligned(const Grid& grid);

}  // namespace phasor::analysis
