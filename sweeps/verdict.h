#pragma once

#include <cstdint>
#include <string>

#include "results/record.h"
#include "sweeps/child.h"
#include "sweeps/spec.h"

namespace phasor::sweeps {

/// Why the runner itself ended a trial's process.
enum class Ended { not_by_us, over_time, stopped, lease_lost };

struct Verdict {
  results::Status status = results::Status::error;
  std::string message;
};

/// What to record of a process that left no record. `log`: its last line. `kernel_ended_one`: the system ended some process for
/// want of memory meanwhile.
Verdict verdict_of(const Exit& exit, Ended by, const Limits& limits, const std::string& log, bool kernel_ended_one);

/// It was asked to end, by us or by others, and did so: neither a result nor a failure.
bool was_interrupted(const Exit& exit);

/// Processes that the system has ended for want of memory since it started.
std::int64_t kernel_oom_kills();

}  // namespace phasor::sweeps
