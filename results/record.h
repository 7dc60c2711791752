#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/spec/json.h"

namespace phasor::results {

/// How a trial ended. All of these are terminal: a rerun of the sweep does not repeat them unless told to.
enum class Status {
  done,
  diverged,  // loss or gradient not finite
  error,     // what went wrong, the trial could say itself
  oom,       // no memory: beyond its limit, or the machine's
  crashed,   // a signal ended its process
  timeout,   // took longer than its limit
  lost,      // several times in a row the machine or the runner went away while it ran
};
const char* to_text(Status status);
/// Ended without numbers; `--retry-failed` runs it again. A divergence is a result.
inline bool is_failure(Status status) { return status != Status::done && status != Status::diverged; }

/// One logged training step. `loss` is the mean over the supervised tokens of the step's batch, before the update.
struct StepLog {
  std::int64_t step = 0;  // 1 = first update
  double loss = 0.0;
  double lr = 0.0;
  double grad_norm = 0.0;  // global L2 norm before clipping
  bool clipped = false;
};

/// Metrics of an evaluation. class_accuracy is the mean over target classes of the accuracy within each. Perplexities are
/// exponentials of mean losses, per token or per byte of text. Those of positions have as slice the last position of a range:
/// a document's first token is at 1. The free ones are of models that continue by themselves: a wrong token is their next input.
inline const std::vector<std::string>& metric_names() {
  static const std::vector<std::string> names = {
      "loss",          "token_accuracy", "sequence_accuracy",   "class_accuracy",      "perplexity",            "byte_perplexity",
      "bits_per_byte", "position_loss",  "position_perplexity", "free_token_accuracy", "free_sequence_accuracy"};
  return names;
}

/// One number of an evaluation: `metric` of `split` on one `slice` (a length; -1 = over all slices) after `step` updates.
struct EvalPoint {
  std::int64_t step = 0;
  std::string split;   // "valid", "test"
  std::string metric;  // one of metric_names()
  std::int64_t slice = -1;  // of position_ metrics: the last position of a range
  double value = 0.0;
  std::int64_t count = 0;  // rows, tokens or classes the value is a mean over
};

struct ParameterInfo {
  std::string name;
  std::int64_t count = 0;
  bool frozen = false;
  bool decays = false;
};

/// Everything that is known of one trial, as stored in one HDF5 file (results/layout.md).
struct TrialRecord {
  std::string id;    // UUID v5 of the canonical identity of `spec`
  Json spec;         // resolved, every default written out
  Status status = Status::done;
  std::string message;  // why it ended, when not done; one line
  std::vector<StepLog> steps;       // every `run.log_every` steps and the last
  std::vector<EvalPoint> evals;
  std::vector<ParameterInfo> parameters;
  /// Single numbers by name: steps_to_solve (nan when censored), steps, spikes, clipped_share, tokens, seconds, step_ms,
  /// shared_rows.<split>.<length> (evaluation rows that are training rows too), ...
  std::vector<std::pair<std::string, double>> summary;
  /// Facts by name: commit, dirty, command, host, processor, instruction_set, compiler, flags, libraries, numerics
  /// revisions, data hashes, ...
  std::vector<std::pair<std::string, std::string>> provenance;
  /// Hash of everything the promise about bits covers: final parameters, logged losses, evaluations. Hex.
  std::string bits;
};

}  // namespace phasor::results
