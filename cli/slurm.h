#pragma once

#include <cstdint>
#include <string>

#include "cli/phases.h"
#include "sweeps/launchers/slurm_plan.h"
#include "sweeps/runner.h"

namespace phasor::cli {

/// `phasor sweep --launcher slurm`: submits what is missing and not in Slurm yet, or with `dry_run` shows what that would be.
/// Prints what follows the head of the sweep. Returns the exit code.
int submit(const Phases& phases, const sweeps::RunnerOptions& options, const sweeps::slurm::Wishes& wishes, bool dry_run);

/// What a task of the array is: `phasor sweep DIR/slurm/1/trials.json --task K`. Returns the exit code.
int run_submitted(const std::string& file, std::int64_t task);

}  // namespace phasor::cli
