#include <filesystem>
#include <fmt/format.h>
#include <optional>

#include "analysis/figures/figures.h"
#include "analysis/figures/spectra.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/session.h"
#include "core/base/error.h"
#include "experiments/spectra.h"
#include "results/files.h"

namespace phasor::cli {

namespace {

std::string stem_of(const std::string& out) { return out.ends_with(".svg") ? out.substr(0, out.size() - 4) : out; }

int plot_spectra(const std::string& checkpoint, const std::vector<std::string>& plugin_files, const SpectraRow& which, const std::string& out) {
  const Plugins plugins(plugin_files);
  plugins.require();
  const results::Spectra spectra = spectra_of_checkpoint(checkpoint, plugins.registry, which);
  for (const analysis::Figure& figure : analysis::spectra_figures(spectra)) {
    const std::string file = stem_of(out) + "-" + figure.name + ".svg";
    results::write_named(file, figure.svg);
    fmt::print("{}\n  {}\n", file, figure.caption);
  }
  results::write_named(stem_of(out) + ".csv", analysis::spectra_csv(spectra));
  fmt::print("{}.csv\n  What they draw, one number a line.\n", stem_of(out));
  return exit_code::done;
}

}  // namespace

int plot(const Arguments& arguments) {
  std::string folder, name, out;
  std::vector<std::string> plugin_files;
  SpectraRow which;
  std::optional<std::int64_t> row;
  bool allow_mixed = false;
  Options options(
      "phasor plot DIR [--figure NAME] --out FILE.svg\n"
      "phasor plot CHECKPOINT.h5 --figure spectra [--split valid|test] [--length N] [--row N] --out FILE.svg",
      "Draws a figure of a sweep's folder as SVG: length, width, heatmap, curves, progress or sensitivity. Without\n"
      "--figure, every one that has something to show, as FILE-NAME.svg. Spectra are of a trained model: its phase\n"
      "temperatures, and phases and gates along a row of its evaluation data, as FILE-NAME.svg, with the numbers in FILE.csv.\n"
      "A trial keeps its last checkpoint with run.keep_checkpoint, as DIR/checkpoints/<id>.h5.\n"
      "exit codes: 0 done, 2 a mistake in a file or option, or nothing to show");
  options.positional("folder of a sweep, or for spectra a checkpoint", folder, true);
  options.text("figure", name, "length, width, heatmap, curves, progress or sensitivity; spectra of a checkpoint");
  options.text("split", which.split, "of the row that spectra read: valid (default) or test");
  options.integer("length", which.length, 1, "of that row; default the first one of the split");
  options.integer("row", row, 0, "which row; default 0");
  options.list("plugin", plugin_files, "FILE", plugin_help);
  options.text("out", out, "file to write");
  options.flag("allow-mixed", allow_mixed, "put trials of different builds, processors, devices side by side");
  if (!options.parse(arguments)) return exit_code::done;
  if (out.empty()) throw UserError("--out: expected a file to write, such as figure.svg");
  if (name == "spectra") {
    if (std::filesystem::is_directory(folder))
      throw UserError(folder + ": found a folder, expected the checkpoint of a trained model, such as " + folder +
                      "/checkpoints/<id>.h5; run.keep_checkpoint keeps them");
    if (which.split != "valid" && which.split != "test") throw UserError("--split: found \"" + which.split + "\", expected valid or test");
    which.row = row.value_or(0);
    return plot_spectra(folder, plugin_files, which, out);
  }
  if (row || which.length || which.split != SpectraRow().split)
    throw UserError("--split, --length, --row: found without --figure spectra, which they belong to");

  const results::Manifest manifest = results::read_manifest(folder);
  const results::Folder records = results::load_folder(folder);
  const analysis::Table table = analysis::make_table(manifest, records, {.allow_mixed = allow_mixed});
  const analysis::Frame frame = analysis::flatten(manifest, records);
  const analysis::FigureSource source{frame, table, records};
  const std::vector<analysis::Figure> made =
      name.empty() ? analysis::figures(source) : analysis::figures_named(source, name);
  if (made.empty()) throw UserError(folder + ": no trial has ended well, so there is nothing to draw");
  const std::string stem = stem_of(out);
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
