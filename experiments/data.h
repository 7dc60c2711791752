#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/nn/task.h"

namespace phasor {

/// Rows of one slice, one after the other.
struct Rows {
  std::int64_t count = 0, tokens = 0;     // rows, positions per row
  std::vector<std::int32_t> ids;          // [count, tokens]
  std::vector<std::int32_t> targets;      // [count, tokens], -1 = not scored
  void resize(std::int64_t rows, std::int64_t positions);
  std::int64_t scored(std::int64_t row) const;  // positions with a target
  Sample row(std::int64_t index);
};

/// Every row of an evaluation slice, and the hash of its content.
struct EvaluationData {
  Slice slice;
  Rows rows;
  std::string hash;
};
EvaluationData make_evaluation_data(const Task&, const Slice&, std::uint64_t eval_seed);

/// Rows of the training set, by the hash of their tokens, to find evaluation rows among them.
class TrainingRows {
 public:
  TrainingRows(const Task&, const Slice& train, std::uint64_t seed);
  /// How many evaluation rows are also training rows; 0 for another number of positions.
  std::int64_t shared(const EvaluationData&) const;

 private:
  std::int64_t tokens_;
  std::unordered_set<std::uint64_t> hashes_;
};

}  // namespace phasor
