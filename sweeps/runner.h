#pragma once

#include <cstdint>

#include "core/base/progress.h"
#include "sweeps/expand.h"
#include "sweeps/folder.h"
#include "sweeps/plan.h"

namespace phasor::sweeps {

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
