#pragma once

#include "cli/phases.h"

namespace phasor::cli {

/// Shows every trial of a sweep: its name, whether it is done, its size, and what it costs here; then the sums. Starts
/// nothing. `jobs`: trials side by side. Returns an exit code.
int describe_sweep(const Phases& phases, const std::string& folder, std::int64_t jobs, const Registry& registry, bool as_json);

}  // namespace phasor::cli
