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

/// How many trials stand where at the end, of the whole sweep, counted once each: by the records that there are.
struct RunSummary {
  std::int64_t done = 0, diverged = 0, failed = 0, missing = 0;
  std::int64_t kept = 0;     // of the first three: were to run again and have the record of before
  std::int64_t started = 0;  // by this runner
  double seconds = 0.0;
  bool interrupted = false;  // by a signal or --fail-fast
  bool killed = false;       // by a second Ctrl-C, or a signal to end: running trials were ended too
  bool complete() const { return failed == 0 && missing == 0 && kept == 0; }
};

/// The most threads that a trial has.
std::int64_t threads_of(const Expansion& expansion);
/// Cores divided by the threads of a trial, at least 1.
std::int64_t default_jobs(const Expansion& expansion);

/// Trials that a run would start.
std::vector<std::size_t> to_run(const Expansion& expansion, const FolderState& state, const RunnerOptions& options);

/// Runs what is missing, each trial in a process of its own (`phasor run FOLDER/<id>.json`, log in FOLDER/logs), or several in
/// one (sweeps/worker.h), whose trials, should it go down, run again in processes of their own; each under a lease (sweeps/lease.h): other runners, on other machines too, may work in the same folder. Returns when every
/// trial has ended, whoever ran it. A record that is to be replaced stands until the new one is stored, and a failure replaces no
/// result. A trial whose process leaves no record gets one that says how it ended (sweeps/verdict.h).
/// Failures and divergences are told when they happen. The first Ctrl-C starts no new trial, and ends those that keep
/// checkpoints at one; the second ends all. A signal to end (SIGTERM) asks every trial to stop after its step. The manifest is
/// written first.
RunSummary run_sweep(const Sweep& sweep, const FolderState& state, const RunnerOptions& options,
                     Progress::Output output = Progress::Output::standard_error());
/// The same for a part of a sweep in a folder that has its manifest: it stays as it is.
RunSummary run_trials(const Sweep& part, const FolderState& state, const RunnerOptions& options,
                      Progress::Output output = Progress::Output::standard_error());

}  // namespace phasor::sweeps
