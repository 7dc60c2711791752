#pragma once

#include <string>

#include "analysis/frame/frame.h"
#include "analysis/report/report.h"
#include "analysis/table/table.h"

namespace phasor::analysis {

/// The trials as JSON for page.js: an object without its last brace, so that `version` can follow. What most trials
/// have in common is said once; curves are thinned so that the lowest and the highest of every span stay.
std::string report_data(const results::Manifest& manifest, const Frame& frame, const Table& table,
                        const results::Folder& folder, const ReportOptions& options);

/// A list of (name, value) that most trials share, and what each has differently; values are texts. `null` = it has no
/// such name.
class Commons {
 public:
  using Entries = std::vector<std::pair<std::string, std::string>>;  // sorted by name
  explicit Commons(const std::vector<Entries>& all);
  const Entries& common() const { return common_; }
  /// Names and values of `own` that are not common; common ones it lacks with no value.
  std::vector<std::pair<std::string, std::optional<std::string>>> own(const Entries& own) const;

 private:
  Entries common_;
};

}  // namespace phasor::analysis
