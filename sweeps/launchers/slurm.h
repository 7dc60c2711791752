#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sweeps/expand.h"
#include "sweeps/folder.h"
#include "sweeps/launchers/slurm_plan.h"
#include "sweeps/launchers/slurm_queue.h"
#include "sweeps/runner.h"

namespace phasor::sweeps::slurm {

/// Trials that a submission would hold: those of `to_run` that no task of an earlier one holds.
std::vector<std::size_t> to_submit(const Expansion& expansion, const FolderState& state, const RunnerOptions& options,
                                   const Queue& queue);

/// Writes `<folder>/slurm/<n>/` (job.sh, trials.json, and the manifest as it is now) and gives it to sbatch. The manifest of
/// the folder is written before. UserError when sbatch is not there or refuses, with what it said; nothing is left of the
/// submission then.
Job submit(const Sweep& sweep, const FolderState& state, const RunnerOptions& options, const Plan& plan);

/// What the script of the next submission would be; nothing is made.
std::string next_script(const Sweep& sweep, const std::string& folder, const Plan& plan);

/// How a task ended.
struct TaskEnd {
  RunSummary summary;   // of its own trials
  std::string requeue;  // whether it is queued again, or why not; empty when it was not asked to end, or not by Slurm
};

/// Runs one task of a submission: what of its part has no record yet, as any runner does. When it is asked to end with work
/// left, and is a task of Slurm that runs, it asks Slurm to queue it again (see should_requeue).
TaskEnd run_task(const std::string& place, std::int64_t task);

}  // namespace phasor::sweeps::slurm
