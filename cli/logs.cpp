#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <set>

#include "cli/commands.h"
#include "cli/options.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "results/files.h"
#include "results/manifest.h"
#include "sweeps/expand.h"
#include "sweeps/status.h"

namespace phasor::cli {

namespace {

/// The id that a user means: the beginning of one, or the name of a cell as tables and messages have it.
std::string trial_named(const results::Manifest& manifest, const std::string& wanted, const std::string& folder) {
  std::set<std::string> found;
  std::vector<std::string> names;
  for (const results::ManifestTrial& cell : manifest.trials) {
    if (!cell.excluded.empty()) continue;
    names.push_back(sweeps::cell_name(manifest, cell));
    if (cell.id.starts_with(wanted) || names.back() == wanted) found.insert(cell.id);
  }
  if (found.size() == 1) return *found.begin();
  if (!found.empty()) throw UserError(quoted_list({wanted}) + " begins " + quoted_list({found.begin(), found.end()}) + ", expected more of it");
  const auto meant = nearest(wanted, names);
  throw UserError("no trial of " + folder + " is called " + quoted_list({wanted}) + (meant ? ", did you mean " + quoted_list({*meant}) + "?" : "") +
                  " Expected the beginning of an id, or a name such as " + quoted_list({names.empty() ? "NoPE / seed 0" : names.front()}));
}

}  // namespace

int logs(const Arguments& arguments) {
  std::vector<std::string> words;
  Options options(
      "phasor logs DIR TRIAL",
      "Prints what the process of a trial wrote. TRIAL is the beginning of its id, or its name in quotes:\n"
      "\"Selective / S2 / lr 0.01 / seed 2\".\n"
      "exit codes: 0 done, 2 no folder of a sweep, no such trial, or one without a log");
  options.positionals("folder and trial", words);
  if (!options.parse(arguments)) return exit_code::done;
  if (words.size() != 2) throw UserError("expected a folder and a trial; usage: phasor logs DIR TRIAL");
  const std::string& folder = words[0];
  const std::string id = trial_named(results::read_manifest(folder), words[1], folder);
  const std::string log = sweeps::log_of(folder, id);
  if (!std::filesystem::exists(log)) throw UserError(log + ": no such log: trial " + id + " was not started here, or its log was deleted");
  fmt::print(stderr, "{}\n", log);
  fmt::print("{}", results::read_file(log));
  return exit_code::done;
}

}  // namespace phasor::cli
