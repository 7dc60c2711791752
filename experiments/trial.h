#pragma once

#include <cstdint>
#include <deque>
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

/// How a trial is carried out; but for the device none of it changes a bit of the result.
struct TrialSettings {
  std::string command = {};  // for the provenance
  std::function<void(const TrialProgress&)> watch = {};  // may be empty, as the others
  std::function<bool()> stop = {};                       // asked after every step; true ends the trial with "interrupted"
  std::function<void(const std::string&)> warn = {};     // one line
  std::string folder = {};   // of checkpoints (experiments/checkpoint.h); empty: none are written or read
  Device* device = nullptr;  // where it trains, whose kind is part of the trial's id; null: the processor
};

/// Trains, evaluates and returns the record; never throws for what goes wrong inside the trial: that is a status and a
/// message. Goes on from a checkpoint where `folder` has one. With run.checkpoint_every it leaves one, also when it is interrupted;
/// who has stored the record removes it, unless run.keep_checkpoint.
results::TrialRecord run_trial(const ExperimentSpec& spec, const TrialSettings& settings);

/// Facts of this build and machine: commit, dirty, host, processor, instruction_set, compiler, flags, libraries.
std::vector<std::pair<std::string, std::string>> machine_provenance();

/// Steps of training for `phasor bench`: seconds per step and time per kernel, and the limits of the machine, measured in turn
/// with the steps on the same threads.
struct BenchResult {
  std::vector<double> step_seconds;      // one per measured step
  std::vector<double> evaluate_seconds;  // of the same evaluation rows after every step; empty without such rows
  std::vector<double> peak_gflops;       // of matrix products
  std::vector<double> copy_gbytes;       // read and written per second from and to memory, in GB
  Profile profile;                       // summed over threads and measured steps
  std::int64_t tokens_per_step = 0, tokens_per_evaluation = 0;
  std::int64_t least_step_bytes = 0;     // Cost::least_step_bytes
  std::int64_t blocks_taken = 0;         // by the lanes from the system, in the measured steps
  std::int64_t parameters = 0;
};
BenchResult bench_trial(const ExperimentSpec& spec, Device* device, std::int64_t warmup, std::int64_t steps);
/// Seconds per step [spec, round] of several experiments, one step of each in every round, on the same memory and processor, or
/// each on its device.
std::vector<std::vector<double>> bench_in_turn(const std::deque<ExperimentSpec>& specs, const std::vector<Device*>& devices,
                                               std::int64_t warmup, std::int64_t rounds);
/// GFLOP/s of 1024^3 f32 products on the calling thread, the median over so many seconds.
double measure_peak(double seconds);

}  // namespace phasor
