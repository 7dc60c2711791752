#include "analysis/table/table.h"

#include <algorithm>

#include "analysis/frame/hygiene.h"
#include "analysis/frame/mixtures.h"
#include "analysis/table/ablate.h"
#include "analysis/table/costs.h"
#include "analysis/table/flags.h"
#include "analysis/text.h"
#include "core/base/error.h"

namespace phasor::analysis {

bool Cell::chosen() const {
  return excluded.empty() && std::all_of(settings.begin(), settings.end(), [](const Setting& setting) {
           return !setting.excluded.empty() || setting.choice.chosen.has_value();
         });
}

std::int64_t Cell::tied() const {
  std::int64_t most = 0;
  for (const Setting& setting : settings) most = std::max(most, setting.choice.tied);
  return most;
}

std::size_t primary_of(const Table& table) {
  const auto found = std::find(table.spec.report.begin(), table.spec.report.end(), table.spec.primary);
  PHASOR_CHECK(found != table.spec.report.end(), "the primary metric is not reported");
  return static_cast<std::size_t>(found - table.spec.report.begin());
}

Table make_table(const results::Manifest& manifest, const results::Folder& folder, const TableOptions& options) {
  TableSpec spec = read_table_spec(manifest.table);
  spec.as_paper = options.as_paper;
  Frame frame = flatten(manifest, folder);
  std::vector<std::string> build = check_mixtures(frame, options.allow_mixed);
  if (options.costs != nullptr) join_costs(frame, folder, *options.costs);
  Table table = ablate(frame, spec);
  table.name = manifest.name;
  if (build.size() > 1) flag_all(table, "mixed");  // beside the counts, what is mixed
  if (options.as_paper) flag_all(table, "as_paper");
  table.build = std::move(build);
  table.data = overlap_notes(frame);
  if (options.costs != nullptr) table.costs = cost_notes(frame, table, *options.costs);
  return table;
}

std::vector<std::string> unfinished(const Table& table) {
  std::vector<std::string> lines;
  for (const TrialStatus status : {TrialStatus::diverged, TrialStatus::error, TrialStatus::oom, TrialStatus::crashed,
                                   TrialStatus::timeout, TrialStatus::lost, TrialStatus::missing}) {
    for (const TrialLine& trial : table.trials) {
      if (trial.status != status || !trial.expected) continue;
      const std::string why = trial.message.empty() ? "" : ": " + trial.message;
      lines.push_back(padded(to_text(status), 8) + "  " + trial.name + why);
    }
  }
  return lines;
}

}  // namespace phasor::analysis
