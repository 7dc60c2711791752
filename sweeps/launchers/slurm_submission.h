#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/spec.h"
#include "sweeps/expand.h"
#include "sweeps/folder.h"
#include "sweeps/launchers/slurm_plan.h"
#include "sweeps/runner.h"

namespace phasor::sweeps::slurm {

/// A trial as it was submitted. Its spec stands there too: the sweep file may change while tasks wait.
struct Submitted {
  Trial trial;
  std::int64_t cell = 0;          // in the trials of the manifest that lies beside
  std::optional<Stamp> replaces;  // the record that it is to replace: a damaged one, or one of a failure that was asked for again
};

/// What `trials.json` of a submission says: everything that its tasks need.
struct Submission {
  std::string name;       // of the sweep
  RunnerOptions options;  // without the folder and what to run again
  Limits limits;
  std::int64_t lead = 0;  // see Plan
  std::vector<std::vector<Submitted>> tasks;
};

/// Folder of the next submission, `<folder>/slurm/<n>`. It is not made.
std::string next_place(const std::string& folder);
/// The same, made: of several at once each gets its own. UserError when that is not possible.
std::string claim_place(const std::string& folder);

void write_submission(const Submission& submission, const std::string& place);
/// UserError when it is not there, or not one.
Submission read_submission(const std::string& place);

/// Which job a submission became. `script`: what Slurm knows it by, besides its number, which another cluster may use too.
struct Job {
  std::string place;   // folder of the submission
  std::string number;  // "123"
  std::string script;  // path, absolute
};
void write_job(const Job& job);
/// Of all submissions of a folder that became one, the earliest first. Empty when nothing was ever submitted there.
std::vector<Job> read_jobs(const std::string& folder);

}  // namespace phasor::sweeps::slurm
