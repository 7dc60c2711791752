#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/hash.h"
#include "core/nn/task.h"
#include "tests/plugins/support.h"

namespace phasor::test {

using Row = std::vector<std::int32_t>;

/// One row with room of its own, as `Task::sample` filled it.
struct MadeRow {
  Row tokens, targets, starts;
  Sample sample() { return {tokens, targets, starts}; }
  bool operator==(const MadeRow&) const = default;
};

inline MadeRow make_row(const Task& task, const Slice& slice, std::uint64_t seed, std::int64_t index) {
  const auto count = static_cast<std::size_t>(task.tokens(slice));
  MadeRow row{Row(count * static_cast<std::size_t>(task.streams()), -7), Row(count, -7),
              Row(task.packs() ? count : 0, -7)};
  task.sample(slice, seed, index, row.sample());
  return row;
}

/// A task plugin, the tasks that options make, and its refusals.
class TaskPluginTest : public testing::Test {
 protected:
  explicit TaskPluginTest(const std::string& name) : TaskPluginTest(name, name) {}
  TaskPluginTest(const std::string& name, const std::string& file)
      : registry_(load({shipped(file)})), plugin_(*registry_->find_task(name)) {}

  std::unique_ptr<Task> make(const std::string& json) const {
    const auto options = read_options(plugin_, json);
    EXPECT_EQ(plugin_.refuses(*options), std::nullopt) << json;
    return plugin_.make(*options);
  }
  std::string refusal(const std::string& json) const {
    return plugin_.refuses(*read_options(plugin_, json)).value_or("accepted");
  }

  std::unique_ptr<Registry> registry_;
  const TaskPlugin& plugin_;
};

/// Hash of rows 0 .. rows-1, made by so many threads (0: by this one), each from its last row to its first.
inline std::string hash_of_rows(const Task& task, const Slice& slice, std::uint64_t seed, std::size_t rows,
                                std::size_t workers) {
  std::vector<MadeRow> made(rows);
  const auto work = [&](std::size_t worker, std::size_t stride) {
    for (std::size_t i = rows; i-- > 0;)
      if (i % stride == worker) made[i] = make_row(task, slice, seed, static_cast<std::int64_t>(i));
  };
  std::vector<std::thread> threads;
  for (std::size_t worker = 0; worker < workers; ++worker) threads.emplace_back(work, worker, workers);
  for (std::thread& thread : threads) thread.join();
  if (workers == 0) work(0, 1);
  ContentHash hash;
  for (const MadeRow& row : made)
    for (const Row* part : {&row.tokens, &row.targets, &row.starts}) hash.update_values(std::span(*part));
  return hash.hex();
}

/// A11 of the acceptance tests: the same bytes for any workers, others for another seed, split or later rows.
inline void expect_pure(const Task& task) {
  std::set<std::string> different;
  for (const Split split : {Split::train, Split::valid, Split::test}) {
    const Slice slice = task.slices(split).back();
    const std::string alone = hash_of_rows(task, slice, 11, 1000, 0);
    for (const std::size_t workers : {1U, 4U, 7U}) EXPECT_EQ(hash_of_rows(task, slice, 11, 1000, workers), alone);
    different.insert(alone);
    different.insert(hash_of_rows(task, slice, 12, 1000, 0));
    std::set<Row> rows;
    for (const std::int64_t index : {0LL, 1LL, 999LL, 1000LL, 1LL << 32U, 1LL << 40U})
      rows.insert(make_row(task, slice, 11, index).tokens);
    EXPECT_EQ(rows.size(), 6U);
  }
  EXPECT_EQ(different.size(), 6U);
}

/// Tokens and targets are what the task says they are.
inline void expect_in_range(const Task& task, const Slice& slice, const MadeRow& row) {
  for (const std::int32_t token : row.tokens) {
    ASSERT_GE(token, task.streams() > 1 ? -1 : 0);
    ASSERT_LT(token, task.vocabulary());
  }
  std::int64_t scored = 0;
  for (const std::int32_t target : row.targets) {
    ASSERT_GE(target, -1);
    ASSERT_LT(target, task.classes().count);
    scored += target >= 0;
  }
  ASSERT_LE(scored, task.max_targets(slice));
  ASSERT_GT(scored, 0);
}

/// Hashes of the units of rows 0 .. rows-1 that `keep` keeps.
template <class Keep>
std::vector<std::uint64_t> unit_hashes(const Task& task, const Slice& slice, std::uint64_t seed, std::int64_t rows,
                                       const Keep& keep) {
  std::vector<std::uint64_t> hashes;
  for (std::int64_t index = 0; index < rows; ++index) {
    MadeRow row = make_row(task, slice, seed, index);
    for (const Unit& unit : task.units(slice, row.sample()))
      if (keep(unit)) hashes.push_back(unit.hash);
  }
  return hashes;
}
/// How many of `hashes` are among `others`.
inline std::int64_t shared(const std::vector<std::uint64_t>& hashes, const std::vector<std::uint64_t>& others) {
  const std::set<std::uint64_t> all(others.begin(), others.end());
  return std::count_if(hashes.begin(), hashes.end(), [&](std::uint64_t hash) { return all.contains(hash); });
}
/// Expects as many of `tried` free draws among `seen` others, of a space of equally likely contents, as chance gives:
/// within 5 standard deviations. The seen contents vary too; twice the binomial variance bounds both.
inline void expect_by_chance(std::int64_t found, std::size_t tried, std::size_t seen, double space) {
  const double chance = 1.0 - std::pow(1.0 - 1.0 / space, static_cast<double>(seen));
  const double expected = chance * static_cast<double>(tried);
  EXPECT_NEAR(static_cast<double>(found), expected, 5.0 * std::sqrt(2.0 * expected * (1.0 - chance)) + 1.0);
}

/// A mean over independent rows, and its standard error.
class Mean {
 public:
  void add(double value) {
    sum_ += value;
    squares_ += value * value;
    count_ += 1.0;
  }
  double mean() const { return sum_ / count_; }
  double error() const { return std::sqrt(std::max(0.0, squares_ / count_ - mean() * mean()) / count_); }

 private:
  double sum_ = 0.0, squares_ = 0.0, count_ = 0.0;
};
/// Within 5 standard errors of `value`, which itself was measured on `others` rows (0: it is exact) and rounded to
/// multiples of `step`.
inline void expect_mean(const Mean& mean, double rows, double value, double others, double step,
                        const std::string& what) {
  const double error = mean.error() * std::sqrt(1.0 + (others > 0.0 ? rows / others : 0.0));
  EXPECT_NEAR(mean.mean(), value, 5.0 * error + 0.5 * step + 1e-12) << what << ", standard error " << error;
}

/// Chi squared of counts against equal shares, and a bound that chance passes once in 300,000 times: the
/// Wilson-Hilferty approximation of the quantile at 4.5 standard deviations.
inline void expect_uniform(const std::vector<double>& counts, const std::string& what) {
  double total = 0.0, statistic = 0.0;
  for (const double count : counts) total += count;
  const double expected = total / static_cast<double>(counts.size());
  ASSERT_GT(expected, 20.0) << what;
  for (const double count : counts) statistic += (count - expected) * (count - expected) / expected;
  const double freedom = static_cast<double>(counts.size() - 1), spread = 2.0 / (9.0 * freedom);
  EXPECT_LT(statistic, freedom * std::pow(1.0 - spread + 4.5 * std::sqrt(spread), 3.0)) << what;
}

/// Of a predicted class per position: whether all scored ones are right, and the share that is.
inline std::pair<double, double> score(const Row& predicted, const Row& targets) {
  double right = 0.0, scored = 0.0;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (targets[t] < 0) continue;
    scored += 1.0;
    right += predicted[t] == targets[t] ? 1.0 : 0.0;
  }
  return {right == scored ? 1.0 : 0.0, right / scored};
}

}  // namespace phasor::test
