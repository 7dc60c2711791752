#include "analysis/theory/theory.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>

#include "analysis/figures/theory.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "results/files.h"

namespace phasor::cli {

int theory(const Arguments& arguments) {
  std::string out;
  Options options("phasor theory [--out FOLDER]",
                  "Computes the statements of the paper that can be checked with numbers, each from its definition, "
                  "beside the value\n"
                  "that it should have; a note says where the paper's derivation needs a correction.\n"
                  "exit codes: 0 every value is as expected, 1 one is not");
  options.text("out", out, "folder for two figures: temperatures.svg and leakage.svg");
  if (!options.parse(arguments)) return exit_code::done;
  const std::vector<analysis::theory::Check> checks = analysis::theory::all_checks();
  std::size_t width = 0, wrong = 0;
  for (const auto& check : checks) width = std::max(width, check.quantity.size());
  std::string statement;
  for (const auto& check : checks) {
    if (check.statement != statement) fmt::print("{}{}\n", statement.empty() ? "" : "\n", check.statement);
    statement = check.statement;
    if (!check.holds()) ++wrong;
    fmt::print("  {:<{}}  {:>11.6g}  expected {:<9.6g}  {}\n", check.quantity, width, check.found, check.expected,
               check.holds() ? "ok" : "WRONG");
    if (!check.note.empty()) fmt::print("      {}\n", check.note);
  }
  fmt::print("\n{} numbers, {} as expected\n", checks.size(), checks.size() - wrong);
  if (!out.empty()) {
    for (const analysis::Figure& figure : analysis::theory_figures()) {
      results::write_named(out + "/" + figure.name + ".svg", figure.svg);
      fmt::print("{}/{}.svg\n  {}\n", out, figure.name, figure.caption);
    }
  }
  return wrong == 0 ? exit_code::done : exit_code::failed;
}

}  // namespace phasor::cli
