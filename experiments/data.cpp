#include "experiments/data.h"

#include <algorithm>
#include <span>

#include "core/base/hash.h"

namespace phasor {

void Rows::resize(std::int64_t rows, std::int64_t positions) {
  count = rows;
  tokens = positions;
  ids.resize(static_cast<std::size_t>(rows * positions));
  targets.resize(ids.size());
}

std::int64_t Rows::scored(std::int64_t row) const {
  const auto begin = targets.begin() + row * tokens;
  return std::count_if(begin, begin + tokens, [](std::int32_t target) { return target >= 0; });
}

Sample Rows::row(std::int64_t index) {
  const auto begin = static_cast<std::size_t>(index * tokens), length = static_cast<std::size_t>(tokens);
  return {std::span(ids).subspan(begin, length), std::span(targets).subspan(begin, length)};
}

namespace {
std::uint64_t hash_of(std::span<const std::int32_t> tokens) {
  return hash64({reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes()});
}
}  // namespace

TrainingRows::TrainingRows(const Task& task, const Slice& train, std::uint64_t seed) : tokens_(task.tokens(train)) {
  Rows one;
  one.resize(1, tokens_);
  hashes_.reserve(static_cast<std::size_t>(train.rows));
  for (std::int64_t i = 0; i < train.rows; ++i) {
    task.sample(train, seed, i, one.row(0));
    hashes_.insert(hash_of(one.ids));
  }
}

std::int64_t TrainingRows::shared(const EvaluationData& data) const {
  if (data.rows.tokens != tokens_) return 0;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < data.rows.count; ++i) {
    const auto begin = static_cast<std::size_t>(i * tokens_);
    count += hashes_.count(hash_of(std::span(data.rows.ids).subspan(begin, static_cast<std::size_t>(tokens_)))) > 0;
  }
  return count;
}

EvaluationData make_evaluation_data(const Task& task, const Slice& slice, std::uint64_t eval_seed) {
  EvaluationData data{slice, {}, {}};
  data.rows.resize(slice.rows, task.tokens(slice));
  for (std::int64_t i = 0; i < slice.rows; ++i) task.sample(slice, eval_seed, i, data.rows.row(i));
  ContentHash hash;
  hash.update_values(std::span<const std::int32_t>(data.rows.ids));
  hash.update_values(std::span<const std::int32_t>(data.rows.targets));
  data.hash = hash.hex();
  return data;
}

}  // namespace phasor
