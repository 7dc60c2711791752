#pragma once

#include <string>

#include "cli/phases.h"

namespace phasor::cli {

/// What of the trials that are to run on the processor cannot, because it needs more memory than this machine has: how many, and why
/// the first of them. Empty when nothing is known against them. Each shape is reckoned once.
std::string memory_problem(const Phases& phases, const sweeps::RunnerOptions& options, const Registry& registry);

/// Trials of one shape cost the same: seeds and learning rates change nothing of it.
std::string shape_of(const Trial& trial);

}  // namespace phasor::cli
