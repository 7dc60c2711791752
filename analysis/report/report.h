#pragma once

#include <functional>
#include <string>

#include "results/costs.h"
#include "results/manifest.h"
#include "results/store.h"

namespace phasor::analysis {

/// What a page tells of a trial's log: where it lies, as a link from the page, and its end. Both may be empty.
struct TrialLog {
  std::string link, tail;
};

struct ReportOptions {
  bool allow_mixed = false;  // as of tables
  const results::Costs* costs = nullptr;  // where some were measured
  bool tolerant = false;     // where no table can be made, the page says why; otherwise that is a UserError
  std::string folder = {};   // as the user named it, for the commands that the page shows
  std::string state = {};    // one line on where the sweep stands now, for a live page
  std::function<TrialLog(const results::ManifestTrial& trial, bool ended_well)> log = {};  // none when empty
};

/// The parts of a page: two fragments of HTML, around the list of trials, and the data of the trials as JSON
/// (docs/report.md).
struct Report {
  std::string name = {};
  std::string top = {};     // question, table, figures
  std::string bottom = {};  // data hygiene, provenance, how to rerun
  std::string data = {};    // with `version`, a hash of all three
  std::string version = {};
};

Report make_report(const results::Manifest& manifest, const results::Folder& folder, const ReportOptions& options);

/// One self-contained HTML file: fetches nothing, and says so to the browser. `live`: it asks data.json beside it for
/// news.
std::string report_page(const Report& report, bool live);
/// What a live page asks for.
std::string report_news(const Report& report);

}  // namespace phasor::analysis
