#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/nn/task.h"

namespace phasor {

/// Rows of one slice, one after the other.
struct Rows {
  std::int64_t count = 0, tokens = 0, streams = 1;  // rows, positions per row, ids per position
  std::vector<std::int32_t> ids;                    // [count, streams, tokens]
  std::vector<std::int32_t> targets;                // [count, tokens], -1 = not scored
  std::vector<std::int32_t> starts;                 // [count, tokens], or empty: rows are not packed
  void resize(const Task&, const Slice&, std::int64_t rows);
  std::int64_t bytes() const { return static_cast<std::int64_t>((ids.size() + targets.size() + starts.size()) * sizeof(std::int32_t)); }
  std::int64_t scored(std::int64_t row) const;  // positions with a target
  Sample row(std::int64_t index);
};

/// Every row of an evaluation slice, and the hash of its content.
struct EvaluationData {
  Slice slice;
  Rows rows;
  std::string hash;
  std::int64_t text_bytes = 0;  // that the targets stand for; 0 = not known, or no text
};
EvaluationData make_evaluation_data(const Task&, const Slice&, std::uint64_t eval_seed);

/// Units of an evaluation slice (rows, or strings of packed rows) that training shows too.
struct Overlap {
  std::int64_t units = 0, distinct = 0, shared = 0;  // distinct: different ones among the units
  double by_chance = 0.0;   // expected if both were drawn freely; 0 where splits are disjoint by construction
  bool disjoint = false;    // all units belong to their split by construction
};

/// One Overlap per evaluation slice, against the training rows that a trial of `rows_seen` rows visits, at most
/// `most` of each training slice.
constexpr std::int64_t overlap_rows = 1 << 18;
struct OverlapReport {
  std::vector<Overlap> slices;
  std::int64_t rows_compared = 0;
  bool all_compared = true;  // every row that the trial visits
};
OverlapReport measure_overlap(const Task&, std::uint64_t seed, std::int64_t rows_seen, const std::vector<EvaluationData>&,
                              std::int64_t most = overlap_rows);

}  // namespace phasor
