#include "results/merge.h"

#include <filesystem>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/options.h"

namespace phasor::cli {

int merge(const Arguments& arguments) {
  std::string folder, out;
  Options options(
      "phasor merge DIR [--out FILE]",
      "Puts every record of a sweep's folder and its manifest into one HDF5 file (results/layout.md), replaced whole.\n"
      "Repeating it gives the same bytes. What is missing or damaged is told.\n"
      "exit codes: 0 done, 2 no folder of a sweep, or a file that cannot be written");
  options.positional("folder of a sweep", folder, true);
  options.text("out", out, "the file; default DIR.h5, beside the folder");
  if (!options.parse(arguments)) return exit_code::done;
  if (out.empty()) {
    std::filesystem::path path(folder);
    if (!path.has_filename()) path = path.parent_path();  // "dir/"
    out = path.lexically_normal().string() + ".h5";
  }
  const results::Merged merged = results::merge_folder(folder, out);
  fmt::print("{:<16} {}   {} trials\n", "written", out, merged.trials);
  for (const results::Damaged& damaged : merged.damaged) fmt::print(stderr, "damaged          {}: {}\n", damaged.file, damaged.reason);
  if (merged.missing > 0) fmt::print(stderr, "missing          {} trials of the sweep have no whole record\n", merged.missing);
  if (merged.others > 0) fmt::print(stderr, "left out         {} records belong to no cell of this sweep\n", merged.others);
  return exit_code::done;
}

}  // namespace phasor::cli
