#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/json.h"
#include "results/record.h"
#include "sweeps/launchers/slurm_queue.h"

namespace phasor::sweeps {

/// A trial that did not end well.
struct Trouble {
  std::string id, name;  // "Selective / S2 / lr 0.01 / seed 2"
  results::Status status = results::Status::error;
  std::string message, log, rerun;
};

/// Where the trials of a folder stand, each counted once.
struct SweepStatus {
  std::string name, folder;
  struct Runner {
    std::string host;
    std::int64_t process = 0, jobs = 0, trials = 0;  // trials: that it works on
    std::string task = {};                           // of Slurm, "123_4"
  };
  std::vector<Runner> runners;       // that hold a lease here
  bool running = false;              // there are some
  std::int64_t jobs() const {
    std::int64_t sum = 0;
    for (const Runner& runner : runners) sum += runner.jobs;
    return sum;
  }
  std::int64_t lost_attempts = 0;    // whose machine or runner went away
  std::int64_t trials = 0, queued = 0, active = 0, done = 0, diverged = 0, failed = 0, missing = 0;
  std::int64_t damaged = 0;          // files that are no whole records, of the missing or queued
  std::int64_t again = 0;            // of the done, diverged and failed: run again now, and count by the record of before until then
  std::int64_t others = 0;           // records that belong to no cell
  std::int64_t measured = 0;         // finished trials whose time is known
  double mean_seconds = 0.0;         // of these, from their start to their record
  std::optional<double> eta_seconds;  // while it runs
  slurm::Queue queue;                // tasks that wait or run there
  std::vector<Trouble> troubles;     // diverged and failed, in the order of the cells
  bool complete() const { return failed + missing + queued + active == 0; }
};

/// Reads sweep.json, the records and the leases, and asks Slurm where something was submitted from here. A trial is queued when
/// a task in Slurm holds it, or when a runner works here that is not such a task: it takes whatever is missing. Writes nothing.
/// UserError when the folder is not one of a sweep.
SweepStatus read_status(const std::string& folder);
Json to_json(const SweepStatus& status);

/// Where the process of a trial writes.
std::string log_of(const std::string& folder, const std::string& id);

}  // namespace phasor::sweeps
