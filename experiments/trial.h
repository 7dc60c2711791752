#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/graph/launch.h"
#include "experiments/spec.h"
#include "results/record.h"

namespace phasor {

/// What a running trial tells whoever watches.
struct TrialProgress {
  std::int64_t step = 0, steps = 0;
  double loss = 0.0, lr = 0.0, grad_norm = 0.0;
  std::string phase;  // "train", "valid", "test"
};

/// Trains, evaluates and returns the record; never throws for what goes wrong inside the trial: that is a status and a
/// message. `command` goes to the provenance. `stop` (may be empty) is asked after every step; when it says true the
/// trial ends with status error, message "interrupted".
results::TrialRecord run_trial(const ExperimentSpec& spec, const std::string& command,
                               const std::function<void(const TrialProgress&)>& watch, const std::function<bool()>& stop);

/// Facts of this build and machine: commit, dirty, host, processor, instruction_set, compiler, flags, libraries.
std::vector<std::pair<std::string, std::string>> machine_provenance();

/// Steps of training without evaluation, for `phasor bench`: seconds per step and time per kernel.
struct BenchResult {
  std::vector<double> step_seconds;    // one per measured step
  std::vector<double> peak_gflops;     // GEMM peak measured between the steps, on the same threads
  Profile profile;                     // summed over threads and measured steps
  std::int64_t tokens_per_step = 0;
  double matrix_flops_per_step = 0.0;  // of matrix products and mixers, as counted by the kernels
  std::int64_t parameters = 0;
};
BenchResult bench_trial(const ExperimentSpec& spec, std::int64_t warmup, std::int64_t steps);

}  // namespace phasor
