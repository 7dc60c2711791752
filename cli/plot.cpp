#include <fmt/format.h>

#include "analysis/figures.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "core/base/error.h"
#include "results/files.h"

namespace phasor::cli {

int plot(const Arguments& arguments) {
  std::string folder, name, out;
  bool allow_mixed = false;
  Options options(
      "phasor plot DIR [--figure NAME] --out FILE.svg",
      "Draws a figure of a sweep's folder as SVG: length, width, heatmap, curves, progress or sensitivity. Without\n"
      "--figure, every one that has something to show, as FILE-NAME.svg.\n"
      "exit codes: 0 done, 2 a mistake in a file or option, or nothing to show");
  options.positional("folder of a sweep", folder, true);
  options.text("figure", name, "length, width, heatmap, curves, progress or sensitivity");
  options.text("out", out, "file to write");
  options.flag("allow-mixed", allow_mixed, "put trials of different builds, processors, devices side by side");
  if (!options.parse(arguments)) return exit_code::done;
  if (out.empty()) throw UserError("--out: expected a file to write, such as figure.svg");

  const results::Manifest manifest = results::read_manifest(folder);
  const results::Folder records = results::load_folder(folder);
  const analysis::Table table = analysis::make_table(manifest, records, {.allow_mixed = allow_mixed});
  const analysis::Frame frame = analysis::flatten(manifest, records);
  const analysis::FigureSource source{frame, table, records};
  const std::vector<analysis::Figure> made =
      name.empty() ? analysis::figures(source) : analysis::figures_named(source, name);
  if (made.empty()) throw UserError(folder + ": no trial has ended well, so there is nothing to draw");
  const std::string stem = out.ends_with(".svg") ? out.substr(0, out.size() - 4) : out;
  for (std::size_t i = 0; i < made.size(); ++i) {
    // With a name, the primary metric's figure has the file's name; others of its kind say which they are.
    const std::string suffix = name.empty() ? "-" + made[i].name
                               : i == 0     ? ""
                                            : "-" + made[i].name.substr(name.size() + 1);
    const std::string file = stem + suffix + ".svg";
    results::write_named(file, made[i].svg);
    fmt::print("{}\n  {}\n", file, made[i].caption);
  }
  return exit_code::done;
}

}  // namespace phasor::cli
