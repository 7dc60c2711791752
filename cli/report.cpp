#include "analysis/report/report.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/trial_log.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "results/files.h"

namespace phasor::cli {

namespace {

namespace fs = std::filesystem;

/// From the folder of the page to that of the sweep: what links begin with.
std::string way_to(const std::string& folder, const std::string& page) {
  const fs::path from = fs::absolute(page).parent_path();
  return fs::absolute(folder).lexically_normal().lexically_relative(from.lexically_normal()).generic_string();
}

}  // namespace

int report(const Arguments& arguments) {
  std::string folder, out = "report.html";
  bool allow_mixed = false;
  Options options("phasor report DIR [--out FILE.html]",
                  "Makes one HTML file of a sweep's folder, for a browser without a network: question, table, figures, "
                  "every trial\n"
                  "with its spec, curve and log, data hygiene, provenance, how to rerun (docs/report.md).\n"
                  "exit codes: 0 done, 2 a mistake in a file or option");
  options.positional("folder of a sweep", folder, true);
  options.text("out", out, "file to write (default report.html)");
  options.flag("allow-mixed", allow_mixed, "put trials of different builds, processors, devices side by side");
  if (!options.parse(arguments)) return exit_code::done;

  const results::Manifest manifest = results::read_manifest(folder);
  TrialLogs logs(folder, manifest);
  analysis::ReportOptions wanted;
  const std::optional<results::Costs> costs = results::find_costs(folder);
  wanted.allow_mixed = allow_mixed;
  wanted.costs = costs ? &*costs : nullptr;
  wanted.folder = shell_words({folder});
  wanted.log = [&, way = way_to(folder, out)](const results::ManifestTrial& trial, bool ended_well) {
    return logs.find(trial.id, ended_well, way);
  };
  const analysis::Report made = analysis::make_report(manifest, results::load_folder(folder), wanted);
  const std::string page = analysis::report_page(made, false);
  results::write_named(out, page);
  fmt::print("written          {}   {:.1f} MB\n", out, static_cast<double>(page.size()) / 1e6);
  return exit_code::done;
}

}  // namespace phasor::cli
