#pragma once

#include <string>
#include <vector>

#include "analysis/table.h"

namespace phasor::analysis {

/// Lines of equal length under column heads: what CSV and Markdown write.
struct Grid {
  std::vector<std::string> heads;
  std::vector<std::vector<std::string>> lines;
};

/// The forms of a table, column by column in tables.md. UserError when an axis has the name of another column.
Grid long_grid(const Table& table);
Grid wide_grid(const Table& table);
Grid trials_grid(const Table& table);
Grid candidates_grid(const Table& table);

std::string csv(const Grid& grid);       // RFC 4180 quoting, lines end in \n
std::string markdown(const Grid& grid);  // a pipe table
/// Columns aligned with spaces, three between them.
std::string aligned(const Grid& grid);

}  // namespace phasor::analysis
