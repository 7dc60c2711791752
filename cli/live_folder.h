#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "analysis/report/report.h"
#include "sweeps/folder.h"

namespace phasor::cli {

/// A sweep's folder as a report that follows it. Only reads; of the records only those that are new or replaced.
class LiveFolder {
 public:
  LiveFolder(std::string folder, bool allow_mixed);

  /// As the folder stands now, looked at again at most once a second. UserError when sweep.json cannot be read.
  const analysis::Report& report();

  /// The file of a trial's log; nothing when the sweep has no such trial, when there is no log, or when it lies outside
  /// the folder.
  std::optional<std::string> log_file(const std::string& id);

 private:
  struct Known {
    sweeps::Stamp stamp;
    std::optional<results::TrialRecord> record;
    std::string damage;
  };
  bool look();  // whether anything changed
  void make();

  std::string folder_;
  bool allow_mixed_;
  std::chrono::steady_clock::time_point looked_{};
  std::optional<sweeps::Stamp> manifest_stamp_;
  results::Manifest manifest_;
  std::map<std::string, Known> files_;  // by name
  std::string state_;
  std::optional<analysis::Report> report_;
};

}  // namespace phasor::cli
