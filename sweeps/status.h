#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/json.h"
#include "results/record.h"

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
  bool running = false;              // a runner holds the lock of the folder
  std::int64_t process = 0;          // of the runner, on this machine; 0 = not known
  std::int64_t jobs = 0;             // of the runner; 0 = not known
  std::int64_t trials = 0, queued = 0, active = 0, done = 0, diverged = 0, failed = 0, missing = 0;
  std::int64_t damaged = 0;          // files that are no whole records, of the missing or queued
  std::int64_t others = 0;           // records that belong to no cell
  std::int64_t measured = 0;         // finished trials whose time is known
  double mean_seconds = 0.0;         // of these
  std::optional<double> eta_seconds;  // while it runs
  std::vector<Trouble> troubles;     // diverged and failed, in the order of the cells
  bool complete() const { return failed + missing + queued + active == 0; }
};

/// Reads sweep.json, the records, and what the system tells of the runner and its processes. Writes nothing. UserError
/// when the folder is not one of a sweep.
SweepStatus read_status(const std::string& folder);
Json to_json(const SweepStatus& status);

/// Where the process of a trial writes.
std::string log_of(const std::string& folder, const std::string& id);

}  // namespace phasor::sweeps
