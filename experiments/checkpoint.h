#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/base/function_ref.h"
#include "experiments/curve.h"
#include "experiments/trainer.h"
#include "results/record.h"

namespace phasor {

namespace results::h5 {
class Reader;
}

/// What a trial has counted so far, beside its curve.
struct TrialCounts {
  std::int64_t clipped = 0, without_targets = 0;
  double steps_to_solve = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> last_norm;  // gradient norm of the last step
  double seconds = 0.0;             // of all processes that worked on the trial
  double train_seconds = 0.0;
  SpikeCounter spikes;
  std::string bits;                 // chain over losses and norms (BitsChain)
};

/// A trial between two steps: everything that the steps to come and the record depend on. Data order, dropout and
/// initialisation are functions of (seed, step), so parameters, the optimiser's memory and these counts are all there is.
struct Checkpoint {
  results::TrialRecord record;  // id, spec, curve, evaluations, provenance so far
  TrialCounts counts;
};

/// results::checkpoint_file is the record so far in the layout of a record, with status error, and the groups
/// `checkpoint`, `values` (parameters by name) and `memory` (of the optimiser). The old file stays until the new one is
/// whole on the disk.
void save_checkpoint(const std::string& folder, const Checkpoint&, const Trainer&);

/// Brings the trainer to where the checkpoint stands. Nothing when there is none, or when it cannot be used: then `warning`
/// says which file and why, and the trial starts anew. One of another build, processor or numerics is not used: the same bits
/// are promised within one only. `record` is the trial's as it would start: id, provenance.
std::optional<Checkpoint> load_checkpoint(const std::string& folder, const results::TrialRecord& record, Trainer&,
                                          std::string& warning);

/// Gives `work` the file of a checkpoint with trained parameters. UserError where it is no such file, or damaged.
void read_trained(const std::string& path, FunctionRef<void(const results::h5::Reader&)> work);

void remove_checkpoint(const std::string& folder, const std::string& id);
/// For who has stored the record of a trial, and not before: then there is nothing to go on with, unless it failed. `keep`:
/// run.keep_checkpoint.
void drop_checkpoint(const std::string& folder, const results::TrialRecord& record, bool keep);

}  // namespace phasor
