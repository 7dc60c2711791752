#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sweeps/expand.h"
#include "sweeps/folder.h"

// What a run of a sweep would start, and how many of it side by side.

namespace phasor::sweeps {

struct RunnerOptions {
  std::string folder = {};
  std::int64_t jobs = 1;               // processes side by side
  std::int64_t trials_per_device = 1;  // in each; several are threads of it, which share a device (docs/cuda.md)
  bool retry_failed = false;  // trials that ended in a failure run again
  bool retry_stale = false;   // and those of another revision
  bool fail_fast = false;     // the first failure starts no new trial
  std::vector<std::string> plugin_files = {};  // of --plugin: processes of trials load them too
  double lease_seconds = 60.0;  // after so long without a sign of life others take our trials over
  std::int64_t attempts = 3;    // lost in a row, without a newer checkpoint, until a trial is recorded as lost
  double grace_seconds = 20.0;  // from a signal to end until running trials are ended
  std::string task = {};        // of Slurm, "123_4", when this runner is one: told to others
  std::int64_t places() const { return jobs * trials_per_device; }  // trials side by side
};

/// The most threads that a trial has.
std::int64_t threads_of(const Expansion& expansion);
/// Cores divided by the threads of a trial, at least 1.
std::int64_t default_jobs(const Expansion& expansion);

/// Trials that a run would start.
std::vector<std::size_t> to_run(const Expansion& expansion, const FolderState& state, const RunnerOptions& options);
/// Of the trials' logs: the first 8 digits of the id, or all where two trials of the sweep would share a log, of other parts of it too.
std::vector<std::string> log_names(const Expansion& expansion);

}  // namespace phasor::sweeps
