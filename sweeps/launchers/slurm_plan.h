#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sweeps/spec.h"

namespace phasor::sweeps::slurm {

/// Long options of sbatch, without their dashes, and what they are given.
using Settings = std::vector<std::pair<std::string, std::string>>;

/// Reads the KEY=VALUE of --slurm. UserError with every one that is not understood: unknown keys with the nearest known one,
/// keys that are ours to choose with how to choose them, a key given twice, values that cannot stand in a script.
Settings read_settings(const std::vector<std::string>& given);

/// What the user asks for.
struct Wishes {
  Settings settings;
  std::optional<std::int64_t> chunk;      // trials of a task
  std::optional<std::int64_t> max_tasks;  // that run at the same time
  std::optional<std::int64_t> jobs;       // processes side by side in a task
  std::int64_t trials_per_device = 1;     // in each
};

/// How trials become the tasks of a job array.
struct Plan {
  std::vector<std::vector<std::size_t>> tasks;  // the trials of each
  std::int64_t chunk = 1, jobs = 1, trials_per_device = 1;
  std::int64_t lead = 0;  // seconds before the end of its time at which a task is asked to end
  Settings settings;      // complete: what was left open is worked out from the limits of a trial
  std::optional<std::int64_t> max_tasks;
};

/// `threads`: of one trial; `grace`: seconds that running trials have to end. Left open, `jobs` follows from cpus-per-task, and
/// `chunk` makes at most 100 tasks.
Plan make_plan(const std::vector<std::size_t>& trials, std::int64_t threads, const Limits& limits, double grace,
               const Wishes& wishes);

/// Where a submission stands; all paths absolute.
struct Place {
  std::string sweep;    // its name
  std::string program;  // this one
  std::string folder;   // of the submission
  std::string working;  // folder in which the command was given
};

/// The script of the array: what sbatch is to know, and one line that becomes the runner of a task. It holds everything:
/// `sbatch <script>` by hand is the same submission.
std::string script_text(const Plan& plan, const Place& place);

/// "9 trials as 5 tasks of 2, 1 side by side in each"
std::string to_text(const Plan& plan);

}  // namespace phasor::sweeps::slurm
