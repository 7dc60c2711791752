#include "sweeps/schema.h"

#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <system_error>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/session.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "results/files.h"

namespace phasor::cli {

int schema(const Arguments& arguments) {
  std::string which, folder;
  std::vector<std::string> plugin_files;
  Options options(
      "phasor schema [experiment|sweep] [--write DIR] [--plugin FILE]...",
      "Prints the JSON Schema (2020-12) of experiment or sweep files, for editors and other programs; with the\n"
      "plugins that are loaded. --write DIR makes DIR/experiment.json and DIR/sweep.json anew.\n"
      "exit codes: 0 done, 2 a mistake in an option");
  options.positional("kind of file", which, false);
  options.text("write", folder, "write both schemas to files of a folder");
  options.list("plugin", plugin_files, "FILE", plugin_help);
  if (!options.parse(arguments)) return exit_code::done;
  if (!which.empty() && which != "experiment" && which != "sweep") {
    throw UserError("found \"" + which + "\", expected \"experiment\" or \"sweep\"");
  }
  const Plugins plugins(plugin_files);
  plugins.require();
  const std::string experiment = sweeps::experiment_schema(plugins.registry).pretty() + "\n";
  const std::string sweep = sweeps::sweep_schema(plugins.registry).pretty() + "\n";
  if (folder.empty()) {
    fmt::print("{}", which == "sweep" ? sweep : experiment);
    return exit_code::done;
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  results::write_named(folder + "/experiment.json", experiment);
  results::write_named(folder + "/sweep.json", sweep);
  fmt::print("written          {0}/experiment.json\nwritten          {0}/sweep.json\n", folder);
  return exit_code::done;
}

}  // namespace phasor::cli
