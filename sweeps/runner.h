#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "sweeps/expand.h"
#include "sweeps/folder.h"

namespace phasor::sweeps {

struct RunnerOptions {
  std::string folder = {};
  std::int64_t jobs = 1;
  bool retry_failed = false;  // trials that ended in an error run again
  bool retry_stale = false;   // and those of another revision
  std::vector<std::string> plugin_files = {};  // of --plugin: processes of trials load them too
};

/// How many trials stand where at the end, of the whole sweep, counted once each.
struct RunSummary {
  std::int64_t done = 0, diverged = 0, failed = 0, missing = 0;
  std::int64_t started = 0;
  double seconds = 0.0;
  bool interrupted = false;
  bool killed = false;  // by a second Ctrl-C, or a signal to end: running trials were ended too
  bool complete() const { return failed == 0 && missing == 0; }
};

/// Cores divided by the threads of a trial, at least 1.
std::int64_t default_jobs(const Expansion& expansion);

/// Trials that a run would start.
std::vector<std::size_t> to_run(const Expansion& expansion, const FolderState& state, const RunnerOptions& options);

/// Runs what is missing, each trial in a process of its own (`phasor run FOLDER/<id>.json`, log in FOLDER/logs). A
/// trial whose process leaves no record gets one of status error. Failures and divergences are told when they happen.
/// The first Ctrl-C starts no new trial, the second ends those that run. The manifest is written first.
RunSummary run_sweep(const Sweep& sweep, const FolderState& state, const RunnerOptions& options,
                     Progress::Output output = Progress::Output::standard_error());

}  // namespace phasor::sweeps
