#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/spec/json.h"

namespace phasor::results {

/// Milliseconds: the median of repeated measurements and their quartiles.
struct Timing {
  double median = 0.0, low = 0.0, high = 0.0;
};
/// Of no measurement there is none.
std::optional<Timing> timing_of(std::vector<double> seconds);

/// What one shape of a sweep costs on one machine. What was not measured is absent, never 0.
struct MeasuredCost {
  std::string key;      // cost_key of the trials it stands for
  std::string trial;    // id of the one that was measured
  std::string problem;  // why it was not; empty when it was
  std::int64_t rows = 0, tokens = 0;  // of a step of training and of a prefill: rows x tokens
  std::int64_t context = 0;           // tokens of every row before the decoded one
  std::optional<Timing> training_ms;  // a step
  std::optional<Timing> prefill_ms;   // all rows, with the token after them
  std::optional<Timing> decode_ms;    // one more token of every row
  std::optional<std::int64_t> state_bytes;      // carried for one row after the context
  std::optional<std::int64_t> training_bytes;   // parameters, gradients, optimiser, activations; counted from the shapes
  std::optional<std::int64_t> decoding_bytes;   // parameters, and the most that states and passes took
};

/// `costs.json` beside the records of a sweep (layout.md): measurements of one build on one machine. They are no part of a trial.
struct Costs {
  std::vector<std::pair<std::string, std::string>> facts;  // commit, dirty, processor, device, threads, rounds
  std::vector<MeasuredCost> entries;

  std::string fact(const std::string& name) const;  // or empty
  const MeasuredCost* find(const std::string& key) const;
};

/// Names what of a trial's spec its costs depend on: all but seeds, numbers of the optimiser, how long it trains, and `run`.
std::string cost_key(const Json& spec);

void write_costs(const Costs& costs, const std::string& folder);
/// Nothing where none were measured; UserError when the file is not understood.
std::optional<Costs> find_costs(const std::string& folder);

}  // namespace phasor::results
