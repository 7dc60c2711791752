#pragma once

#include <cstdint>
#include <string>

#include "analysis/report/report.h"
#include "results/manifest.h"

namespace phasor::cli {

/// The logs of a sweep's trials for a report: a link to each that is there, and the end of its text as long as the
/// report does not grow too large. Those of trials that did not end well come with their text in any case.
class TrialLogs {
 public:
  TrialLogs(std::string folder, const results::Manifest& manifest);
  analysis::TrialLog find(const std::string& id, bool ended_well, const std::string& way);

 private:
  std::string folder_;
  bool few_ = false;
  std::int64_t room_ = 4'000'000;  // bytes of text that are left
};

}  // namespace phasor::cli
