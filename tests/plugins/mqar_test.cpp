#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "core/base/philox.h"
#include "core/nn/splits.h"
#include "plugins/tasks/mqar/distinct.h"
#include "tests/plugins/task_rows.h"

namespace phasor {
namespace {

using test::MadeRow;
using test::make_row;
using test::Mean;
using test::Row;

class MqarTest : public test::TaskPluginTest {
 protected:
  MqarTest() : TaskPluginTest("mqar") {}
  /// One size of rows in all splits.
  std::unique_ptr<Task> one(std::int64_t vocabulary, std::int64_t length, std::int64_t pairs,
                            const std::string& more = "") const {
    const std::string lists =
        R"({"rows": [1000], "lengths": [)" + std::to_string(length) + R"(], "pairs": [)" + std::to_string(pairs) + "]}";
    return make(R"({"vocabulary": )" + std::to_string(vocabulary) + more + R"(, "train": )" + lists + R"(, "valid": )" +
                lists + R"(, "test": )" + lists + "}");
  }
};

/// What is wrong with an interleaved row of `pairs` pairs (tasks.md 1.4), or nothing.
std::string problem_of(const Row& tokens, const Row& targets, std::int32_t vocabulary, std::size_t pairs,
                       bool fillers) {
  const std::int32_t half = vocabulary / 2;
  std::map<std::int32_t, std::int32_t> value_of;
  std::set<std::int32_t> values;
  for (std::size_t i = 0; i < pairs; ++i) {
    const std::int32_t key = tokens[2 * i], value = tokens[2 * i + 1];
    if (key < 1 || key >= half) return "a key that is none";
    if (value < half || value >= vocabulary) return "a value that is none";
    value_of[key] = value;
    values.insert(value);
  }
  if (value_of.size() != pairs || values.size() != pairs) return "keys or values twice";
  std::set<std::int32_t> asked;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    if (targets[t] >= 0) {
      if (t < 2 * pairs || t % 2 != 0 || t + 2 > tokens.size()) return "a query where none may be";
      const auto pair = value_of.find(tokens[t]);
      if (pair == value_of.end()) return "a query that is no key";
      if (pair->second != targets[t]) return "not the value of the key";
      asked.insert(tokens[t]);
    } else if (t >= 2 * pairs && !fillers && tokens[t] != 0) {
      return "a token where nothing is asked";
    }
  }
  const auto scored = std::count_if(targets.begin(), targets.end(), [](std::int32_t x) { return x >= 0; });
  if (static_cast<std::size_t>(scored) != pairs || asked.size() != pairs) return "not every key once";
  return "";
}

TEST(MqarForm, WorkedExamplesAreRows) {
  constexpr std::int32_t n = -1;
  EXPECT_EQ(problem_of({8, 15, 3, 11, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                       {n, n, n, n, 15, n, 11, n, n, n, n, n, n, n, n, n}, 20, 2, false),
            "");
  EXPECT_EQ(problem_of({4, 15, 2, 12, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0},
                       {n, n, n, n, 15, n, n, n, n, n, n, n, n, n, 12, n}, 20, 2, false),
            "");
  EXPECT_EQ(problem_of({4, 15, 2, 12, 8, 17, 7, 14, 2, 0, 8, 0, 7, 0, 4, 0},
                       {n, n, n, n, n, n, n, n, 12, n, 17, n, 14, n, 15, n}, 20, 4, false),
            "");
  const Row filled = {8, 15, 3, 12, 3, 19, 8, 3, 17, 3, 3, 6, 16, 19, 18, 16};
  Row labels(16, n);
  labels[6] = 15;
  labels[10] = 12;
  EXPECT_EQ(problem_of(filled, labels, 20, 2, true), "");
  EXPECT_EQ(problem_of(filled, labels, 20, 2, false), "a token where nothing is asked");
  Row other = labels;
  other[10] = 15;
  EXPECT_EQ(problem_of(filled, other, 20, 2, true), "not the value of the key");
  other[10] = n;
  EXPECT_EQ(problem_of(filled, other, 20, 2, true), "not every key once");
  other[4] = 12;
  EXPECT_EQ(problem_of(filled, other, 20, 2, true), "") << "key 3 may be asked at either place";
  other[4] = n;
  other[9] = 12;
  EXPECT_EQ(problem_of(filled, other, 20, 2, true), "a query where none may be");
}

TEST_F(MqarTest, RowsKeepTheInvariants) {
  struct Size {
    std::int64_t vocabulary, length, pairs;
    bool fillers;
  };
  for (const Size& size :
       {Size{20, 16, 2, false}, Size{20, 16, 4, false}, Size{256, 64, 4, true}, Size{256, 64, 16, true},
        Size{257, 64, 8, false}, Size{8192, 512, 64, true}, Size{1026, 1024, 256, true}, Size{6, 4, 1, true}}) {
    const auto task = one(size.vocabulary, size.length, size.pairs,
                          std::string(R"(, "random_non_queries": )") + (size.fillers ? "true" : "false"));
    const Slice slice = task->slices(Split::train).front();
    const std::int64_t rows = size.length > 64 ? 500 : 10000;
    for (std::int64_t index = 0; index < rows; ++index) {
      const MadeRow row = make_row(*task, slice, 3, index);
      ASSERT_EQ(problem_of(row.tokens, row.targets, static_cast<std::int32_t>(size.vocabulary),
                           static_cast<std::size_t>(size.pairs), size.fillers),
                "")
          << size.vocabulary << " " << size.length << " " << size.pairs << ", row " << index;
      test::expect_in_range(*task, slice, row);
      if (size.fillers) continue;
      ASSERT_EQ(std::count(row.tokens.begin(), row.tokens.end(), 0), size.length - 3 * size.pairs);
    }
  }
}

/// Slots of the keys in their order, of a row without doubt about them (targets tell the queries).
std::vector<std::size_t> slots_of(const MadeRow& row, std::size_t pairs) {
  std::vector<std::size_t> slots(pairs);
  for (std::size_t t = 2 * pairs; t < row.targets.size(); t += 2) {
    if (row.targets[t] < 0) continue;
    for (std::size_t i = 0; i < pairs; ++i)
      if (row.tokens[2 * i] == row.tokens[t]) slots[i] = t / 2 - pairs;
  }
  return slots;
}

/// A line of the table of tasks.md 1.3, as printed there.
struct Measured {
  std::int64_t length, pairs;
  double mean, mean_step, first, first_step, last, last_step;
  double used[5];  // slots 0 to 3 and the last
  double in_order;
  std::int64_t distance;  // median, from a key to its query
};

TEST_F(MqarTest, StatisticsOfSlots) {
  constexpr double rows = 10000;  // of the table: not told; taken to be as many
  const Measured table[] = {
      {64, 4, 7.10, .01, 6.18, .01, 8.06, .01, {.70, .46, .35, .27, .043}, .283, 14},
      {64, 8, 7.40, .01, 5.26, .01, 9.46, .01, {.96, .82, .70, .59, .13}, .158, 20},
      {64, 16, 7.50, .01, 3.83, .01, 11.64, .01, {1, 1, 1, 1, 1}, .108, 32},
      {128, 8, 14.2, .1, 11.5, .1, 17.1, .1, {.89, .69, .53, .45, .050}, .153, 26},
      {128, 32, 15.5, .1, 6.76, .01, 24.7, .1, {1, 1, 1, 1, 1}, .058, 62},
      {256, 16, 28.3, .1, 20.7, .1, 33.7, .1, {.98, .88, .77, .66, .042}, .076, 50},
      {256, 32, 30.6, .1, 17.3, .1, 40.1, .1, {1, .996, .986, .962, .131}, .045, 78},
      {256, 64, 31.5, .1, 12.9, .1, 51.8, .1, {1, 1, 1, 1, 1}, .030, 124},
      {512, 64, 61.3, .1, 33.1, .1, 77.7, .1, {1, 1, 1, .998, .122}, .022, 154},
  };
  for (const Measured& line : table) {
    const auto task = one(8192, line.length, line.pairs);
    const Slice slice = task->slices(Split::train).front();
    const auto pairs = static_cast<std::size_t>(line.pairs), slots = static_cast<std::size_t>(line.length) / 2 - pairs;
    const std::size_t watched[5] = {0, 1, 2, 3, slots - 1};
    Mean mean, first, last, used[5], in_order, nearer, near, spurious;
    for (std::int64_t index = 0; index < static_cast<std::int64_t>(rows); ++index) {
      const MadeRow row = make_row(*task, slice, 0, index);
      const std::vector<std::size_t> at = slots_of(row, pairs);
      const std::set<std::size_t> sorted(at.begin(), at.end());
      ASSERT_EQ(sorted.size(), pairs);
      double sum = 0.0, ordered = 0.0, below = 0.0, within = 0.0;
      auto query = sorted.begin();
      for (std::size_t i = 0; i < pairs; ++i, ++query) {
        sum += static_cast<double>(at[i]);
        ordered += *query == at[i] ? 1.0 : 0.0;
        const auto distance = static_cast<std::int64_t>(2 * (pairs + at[i] - i));
        below += distance < line.distance ? 1.0 : 0.0;
        within += distance <= line.distance ? 1.0 : 0.0;
      }
      const auto share = static_cast<double>(line.pairs);
      mean.add(sum / share);
      in_order.add(ordered / share);
      nearer.add(below / share);
      near.add(within / share);
      first.add(static_cast<double>(at.front()));
      last.add(static_cast<double>(at.back()));
      for (std::size_t w = 0; w < 5; ++w) used[w].add(sorted.contains(watched[w]) ? 1.0 : 0.0);
      const std::set<std::int32_t> keys = [&] {
        std::set<std::int32_t> all;
        for (std::size_t i = 0; i < pairs; ++i) all.insert(row.tokens[2 * i]);
        return all;
      }();
      double fakes = 0.0;
      for (std::size_t t = 2 * pairs; t < row.tokens.size(); ++t)
        fakes += row.targets[t] < 0 && keys.contains(row.tokens[t]) ? 1.0 : 0.0;
      spurious.add(fakes);
    }
    const std::string what = std::to_string(line.length) + ", " + std::to_string(line.pairs) + ": ";
    test::expect_mean(mean, rows, line.mean, rows, line.mean_step, what + "mean slot");
    test::expect_mean(first, rows, line.first, rows, line.first_step, what + "slot of the first key");
    test::expect_mean(last, rows, line.last, rows, line.last_step, what + "slot of the last key");
    for (std::size_t w = 0; w < 5; ++w)
      test::expect_mean(used[w], rows, line.used[w], rows, line.length == 64 || w < 4 ? .01 : .001,
                        what + "slot " + std::to_string(watched[w]));
    test::expect_mean(in_order, rows, line.in_order, rows, .001, what + "queries in the order of keys");
    const double both = std::sqrt(2.0);  // the median of the table is measured too
    EXPECT_LE(nearer.mean(), 0.5 + 5.0 * both * nearer.error()) << what << "median distance";
    EXPECT_GE(near.mean(), 0.5 - 5.0 * both * near.error()) << what << "median distance";
    const auto fillers = static_cast<double>((line.length - 3 * line.pairs) * line.pairs);
    test::expect_mean(spurious, rows, fillers / 8192.0, 0, 0, what + "keys among fillers");
  }
}

TEST_F(MqarTest, LawOfTheFirstSlots) {
  // Exact: the first key's slot has the weights themselves; 1.4.
  constexpr std::int64_t rows = 40000;
  const auto law = [&](const std::string& more) {
    const auto task = one(8192, 64, 4, more);
    std::vector<Mean> all(6);  // P(s_0 = 0, 1, 2), E s_0, E s_1, mean slot
    for (std::int64_t index = 0; index < rows; ++index) {
      const auto at = slots_of(make_row(*task, task->slices(Split::train).front(), 7, index), 4);
      for (std::size_t g = 0; g < 3; ++g) all[g].add(at[0] == g ? 1.0 : 0.0);
      all[3].add(static_cast<double>(at[0]));
      all[4].add(static_cast<double>(at[1]));
      all[5].add(static_cast<double>(at[0] + at[1] + at[2] + at[3]) / 4.0);
    }
    return all;
  };
  const std::vector<Mean> steep = law("");
  const double exact[5] = {.2511, .1264, .0846, 6.202, 6.832};
  for (std::size_t i = 0; i < 5; ++i)
    test::expect_mean(steep[i], rows, exact[i], 0, i < 3 ? 1e-4 : 1e-3, std::to_string(i));
  const std::vector<Mean> flat = law(R"(, "power_a": 1)");
  for (std::size_t g = 0; g < 3; ++g) test::expect_mean(flat[g], rows, 1.0 / 28.0, 0, 0, "uniform");
  test::expect_mean(flat[5], rows, 13.5, 0, 0, "uniform mean slot");
  test::expect_mean(law(R"(, "power_a": 0.1)")[5], rows, 7.64, 10000, .01, "mean slot at a = 0.1");
}

TEST_F(MqarTest, KeysValuesAndFillersAreUniform) {
  const auto task = one(64, 32, 4);
  std::vector<double> keys(31), values(32), fillers(64), asked(32);
  for (std::int64_t index = 0; index < 10000; ++index) {
    const MadeRow row = make_row(*task, task->slices(Split::valid).front(), 1, index);
    for (std::size_t t = 0; t < 32; ++t) {
      const std::int32_t token = row.tokens[t];
      if (t < 8) {
        (t % 2 == 0 ? keys[static_cast<std::size_t>(token - 1)] : values[static_cast<std::size_t>(token - 32)]) += 1.0;
      } else if (row.targets[t] >= 0) {
        asked[static_cast<std::size_t>(row.targets[t] - 32)] += 1.0;
      } else {
        fillers[static_cast<std::size_t>(token)] += 1.0;
      }
    }
  }
  test::expect_uniform(keys, "keys");
  test::expect_uniform(values, "values");
  test::expect_uniform(fillers, "fillers");
  test::expect_uniform(asked, "labels");
}

TEST_F(MqarTest, Pure) {
  test::expect_pure(*make("{}"));
  test::expect_pure(*make(R"({"form": "stacked", "passes": 2, "train": {"lengths": [12], "pairs": [4]},
    "valid": {"lengths": [12], "pairs": [4]}, "test": {"rows": [9], "lengths": [24], "pairs": [8]}})"));
}

TEST_F(MqarTest, FillersChangeNothingElse) {
  const auto with = one(256, 64, 4), without = one(256, 64, 4, R"(, "random_non_queries": false)");
  const Slice slice = with->slices(Split::test).front();
  for (std::int64_t index = 0; index < 100; ++index) {
    const MadeRow a = make_row(*with, slice, 5, index), b = make_row(*without, slice, 5, index);
    EXPECT_EQ(a.targets, b.targets);
    for (std::size_t t = 0; t < 64; ++t) EXPECT_TRUE(b.tokens[t] == 0 || a.tokens[t] == b.tokens[t]);
  }
}

TEST_F(MqarTest, SlicesFollowTheLists) {
  const auto task = make(R"({"vocabulary": 2048, "curriculum": false,
    "train": {"rows": [100, 20, 30], "lengths": [64, 128, 256], "pairs": [4, 8, 64]},
    "test": {"rows": [5, 6], "lengths": [64, 1024], "pairs": [16, 256]}})");
  const auto train = task->slices(Split::train), test = task->slices(Split::test);
  ASSERT_EQ(train.size(), 3U);
  ASSERT_EQ(test.size(), 2U);
  EXPECT_EQ(train[2].length, 64);
  EXPECT_EQ(train[2].rows, 30);
  EXPECT_EQ(train[2].segment, 2);
  EXPECT_EQ(task->tokens(train[2]), 256);
  EXPECT_EQ(task->max_targets(test[1]), 256);
  EXPECT_EQ(task->tokens(test[1]), 1024);
  EXPECT_FALSE(task->curriculum());
  EXPECT_TRUE(make("{}")->curriculum());
  EXPECT_EQ(task->vocabulary(), 2048);
  EXPECT_EQ(task->streams(), 1);
  EXPECT_EQ(task->classes().first, 0);
  EXPECT_EQ(task->classes().count, 2048);
  EXPECT_DOUBLE_EQ(task->chance(), 1.0 / 1024.0);
  EXPECT_EQ(task->prompt(test[0]), 0);
  EXPECT_FALSE(task->packs());
}

TEST_F(MqarTest, SplitsShareNoPairs) {
  // Just above 2^24 choices of two pairs: 65 * 64 * 66 * 65 = 17.8 million. Drawn freely, 30,000 rows of test would
  // share about 50 with 30,000 of train.
  for (const std::string more : {R"(, "random_non_queries": false)", R"(, "random_non_queries": true)"}) {
    const auto task = one(132, 8, 2, more);
    std::set<Row> seen[3];
    for (const Split split : {Split::train, Split::valid, Split::test}) {
      const Slice slice = task->slices(split).front();
      for (std::int64_t index = 0; index < 30000; ++index) {
        MadeRow row = make_row(*task, slice, 2, index);
        const Row context(row.tokens.begin(), row.tokens.begin() + 4);
        ASSERT_EQ(split_of(content_hash(Row{context[0], context[2], context[1], context[3]})), split);
        seen[static_cast<std::size_t>(split)].insert(context);
        const auto units = task->units(slice, row.sample());
        ASSERT_EQ(units.size(), 1U);
        ASSERT_EQ(units[0].hash, content_hash(row.tokens));
        ASSERT_TRUE(units[0].disjoint);
        ASSERT_NEAR(units[0].log2_space, std::log2(65.0 * 64.0 * 66.0 * 65.0), 1e-9);
      }
    }
    for (const auto& [a, b] : {std::pair{0, 1}, {0, 2}, {1, 2}})
      for (const Row& context : seen[a]) ASSERT_FALSE(seen[b].contains(context));
  }
}

TEST_F(MqarTest, SmallSpacesOverlapByChance) {
  // One slot and nothing else: 5 * 6 rows. And below 2^24: 30 * 29 * 31 * 30 pairs, two slots in either order.
  for (const auto& [vocabulary, length, pairs, space] :
       {std::tuple{12, 4, 1, 30.0}, {62, 8, 2, 30.0 * 29.0 * 31.0 * 30.0 * 2.0}}) {
    const auto task = one(vocabulary, length, pairs, R"(, "power_a": 1, "random_non_queries": false)");
    const auto keep = [](const Unit& unit) { return !unit.disjoint; };
    const std::int64_t rows = space < 100 ? 40 : 10000;
    const auto train = test::unit_hashes(*task, task->slices(Split::train).front(), 1, rows, keep);
    const auto tested = test::unit_hashes(*task, task->slices(Split::test).front(), 1, rows, keep);
    ASSERT_EQ(train.size(), static_cast<std::size_t>(rows));
    test::expect_by_chance(test::shared(tested, train), tested.size(), train.size(), space);
  }
}

TEST_F(MqarTest, ScoresOfPredictors) {
  const auto task = one(256, 64, 4);
  const Slice slice = task->slices(Split::valid).front();
  Mean within, uniform;
  for (std::int64_t index = 0; index < 10000; ++index) {
    const MadeRow row = make_row(*task, slice, 4, index);
    // Looks up the key among the first pairs: right everywhere, without the targets.
    Row found(64, -5), guessed(64), any(64);
    const Draws fresh(99, Purpose::statistics, static_cast<std::uint64_t>(index));
    Draws draws = fresh;
    for (std::size_t t = 8; t < 64; ++t) {
      for (std::size_t i = 0; i < 4; ++i)
        if (row.tokens[2 * i] == row.tokens[t]) found[t] = row.tokens[2 * i + 1];
      guessed[t] = row.tokens[2 * draws.below(4) + 1];
      any[t] = 128 + static_cast<std::int32_t>(draws.below(128));
    }
    ASSERT_EQ(test::score(found, row.targets), (std::pair{1.0, 1.0}));
    within.add(test::score(guessed, row.targets).second);
    uniform.add(test::score(any, row.targets).second);
    const auto query = std::find_if(row.targets.begin(), row.targets.end(), [](std::int32_t x) { return x >= 0; });
    found[static_cast<std::size_t>(query - row.targets.begin())] += 1;
    ASSERT_EQ(test::score(found, row.targets), (std::pair{0.0, 0.75}));
  }
  test::expect_mean(within, 10000, 0.25, 0, 0, "a value of the row");
  test::expect_mean(uniform, 10000, task->chance(), 0, 0, "any value");
}

/// What is wrong with a stacked row, or nothing: keys, values (-1 in the query part), targets by value index.
std::string stacked_problem(const Row& keys, const Row& values, const Row& targets, std::int32_t vocabulary,
                            std::size_t pairs) {
  const std::int32_t half = vocabulary / 2;
  std::map<std::int32_t, std::int32_t> value_of;
  std::set<std::int32_t> all_values;
  for (std::size_t t = 0; t < keys.size(); ++t) {
    if (keys[t] < 0 || keys[t] >= half) return "a key that is none";
    if (t < pairs) {
      value_of[keys[t]] = values[t];
      all_values.insert(values[t]);
      if (values[t] < half || values[t] >= vocabulary) return "a value that is none";
    }
    if (!value_of.contains(keys[t])) return "a key of no pair";
    const std::int32_t value = value_of[keys[t]];
    const bool asked = t + pairs >= keys.size();
    if (asked ? values[t] != -1 || targets[t] != value - half : values[t] != value || targets[t] != -1)
      return "not the value of the key";
  }
  if (value_of.size() != pairs || all_values.size() != pairs) return "keys or values twice";
  for (std::size_t part = 0; part < keys.size(); part += pairs)
    if (std::set(keys.begin() + static_cast<std::ptrdiff_t>(part),
                 keys.begin() + static_cast<std::ptrdiff_t>(part + pairs))
            .size() != pairs)
      return "a part without every key";
  return "";
}

TEST(StackedForm, WorkedExamplesAreRows) {
  constexpr std::int32_t n = -1;
  EXPECT_EQ(stacked_problem({2, 3, 5, 5, 2, 3}, {11, 9, 6, n, n, n}, {n, n, n, 0, 5, 3}, 12, 3), "");
  EXPECT_EQ(stacked_problem({2, 5, 2, 5, 5, 2}, {6, 9, 6, 9, n, n}, {n, n, n, n, 3, 0}, 12, 2), "");
  EXPECT_EQ(stacked_problem({2, 5, 2, 5, 5, 2}, {6, 9, 6, 9, n, n}, {n, n, n, n, 0, 3}, 12, 2),
            "not the value of the key");
  EXPECT_EQ(stacked_problem({2, 5, 2, 2, 5, 2}, {6, 9, 6, 6, n, n}, {n, n, n, n, 3, 0}, 12, 2),
            "a part without every key");
}

TEST_F(MqarTest, StackedRowsKeepTheInvariants) {
  for (const auto& [vocabulary, pairs, passes] :
       {std::tuple{12, 3, 1}, {12, 6, 2}, {13, 4, 3}, {256, 4, 1}, {8192, 64, 1}, {4, 1, 1}}) {
    const auto task =
        one(vocabulary, (passes + 1) * pairs, pairs, R"(, "form": "stacked", "passes": )" + std::to_string(passes));
    const Slice slice = task->slices(Split::train).front();
    EXPECT_EQ(task->streams(), 2);
    EXPECT_EQ(task->classes().first, vocabulary / 2);
    EXPECT_EQ(task->classes().count, vocabulary - vocabulary / 2);
    const std::int64_t rows = pairs > 16 ? 1000 : 10000;
    for (std::int64_t index = 0; index < rows; ++index) {
      const MadeRow row = make_row(*task, slice, 3, index);
      const auto middle = row.tokens.begin() + static_cast<std::ptrdiff_t>(row.targets.size());
      ASSERT_EQ(stacked_problem(Row(row.tokens.begin(), middle), Row(middle, row.tokens.end()), row.targets, vocabulary,
                                static_cast<std::size_t>(pairs)),
                "");
      test::expect_in_range(*task, slice, row);
    }
  }
}

TEST_F(MqarTest, StackedOrdersAreUnrelatedAndUniform) {
  const auto task = one(13, 12, 4, R"(, "form": "stacked", "passes": 2)");
  Mean queries, second;
  std::vector<double> keys(6), values(7), labels(7);
  for (std::int64_t index = 0; index < 10000; ++index) {
    const MadeRow row = make_row(*task, task->slices(Split::train).front(), 1, index);
    double ordered = 0.0, again = 0.0;
    for (std::size_t i = 0; i < 4; ++i) {
      ordered += row.tokens[8 + i] == row.tokens[i] ? 0.25 : 0.0;
      again += row.tokens[8 + i] == row.tokens[4 + i] ? 0.25 : 0.0;
      keys[static_cast<std::size_t>(row.tokens[i])] += 1.0;
      values[static_cast<std::size_t>(row.tokens[12 + i] - 6)] += 1.0;
      labels[static_cast<std::size_t>(row.targets[8 + i])] += 1.0;
    }
    queries.add(ordered);
    second.add(again);
  }
  test::expect_mean(queries, 10000, 0.25, 0, 0, "queries against the first pass");
  test::expect_mean(second, 10000, 0.25, 0, 0, "queries against the second pass");
  test::expect_uniform(keys, "keys, 0 among them");
  test::expect_uniform(values, "values, the last of an odd vocabulary among them");
  test::expect_uniform(labels, "labels");
}

TEST_F(MqarTest, KnownRows) {
  // Stored results depend on these numbers; a change of them raises the revision.
  EXPECT_EQ(plugin_.info.revision, 1);
  const auto task = one(20, 8, 2);
  const MadeRow row = make_row(*task, task->slices(Split::train).front(), 0, 0);
  EXPECT_EQ(row.tokens, (Row{9, 17, 6, 13, 9, 17, 6, 13}));
  const auto stacked = one(20, 4, 2, R"(, "form": "stacked")");
  EXPECT_EQ(make_row(*stacked, stacked->slices(Split::test).front(), 20261129, 3).tokens,
            (Row{5, 6, 6, 5, 14, 18, -1, -1}));
}

TEST_F(MqarTest, RefusesWithTheReason) {
  const auto train = [](const std::string& lists, const std::string& more = "") {
    return R"({"train": )" + lists + more + "}";
  };
  EXPECT_EQ(refusal("{}"), "accepted");
  EXPECT_EQ(refusal(train(R"({"rows": [9, 9], "lengths": [64], "pairs": [4]})")),
            "train: found 2 rows, 1 lengths and 1 pairs, expected lists of one size, an entry for each slice");
  EXPECT_EQ(refusal(train(R"({"rows": [], "lengths": [], "pairs": []})")),
            "train: found 0 rows, 0 lengths and 0 pairs, expected lists of one size, an entry for each slice");
  EXPECT_EQ(refusal(train(R"({"rows": [9], "lengths": [65], "pairs": [4]})")),
            "train, slice 0: found length 65, expected an even one");
  EXPECT_EQ(
      refusal(R"({"test": {"rows": [9, 9], "lengths": [64, 30], "pairs": [4, 8]}})"),
      "test, slice 1: found length 30 for 8 pairs, expected at least 32: two positions to show a pair, two to ask "
      "for it");
  EXPECT_EQ(refusal(R"({"vocabulary": 64})"), "train, slice 0: found length 64, expected less than the vocabulary, 64");
  EXPECT_EQ(refusal(train(R"({"rows": [9], "lengths": [1024], "pairs": [128]})")),
            "train, slice 0: found 128 pairs, expected at most 127, the keys of a vocabulary of 256");
  EXPECT_EQ(refusal(R"({"valid": {"rows": [9, 9, 8], "lengths": [64, 64, 32], "pairs": [4, 8, 4]}})"),
            "valid.pairs: found 4 twice, expected each number once");
  EXPECT_EQ(refusal(R"({"passes": 2})"), "passes: found 2, expected 1: interleaved rows show their pairs once");
  const std::string lists = R"({"rows": [9], "lengths": [8], "pairs": [4]})";
  const std::string all = R"(, "valid": )" + lists + R"(, "test": )" + lists + R"(, "form": "stacked")";
  EXPECT_EQ(refusal(train(lists, all)), "accepted");
  EXPECT_EQ(refusal(train(lists, all + R"(, "passes": 2)")),
            "train, slice 0: found length 8, expected 12, (passes + 1) * pairs of stacked rows");
  EXPECT_EQ(refusal(train(lists, all + R"(, "power_a": 0.5)")),
            "power_a, random_non_queries: found other than default, expected neither: stacked rows have no gap");
  EXPECT_EQ(refusal(train(R"({"rows": [9], "lengths": [256], "pairs": [128]})", all)), "accepted") << "key 0 counts";
  EXPECT_EQ(refusal(train(R"({"rows": [9], "lengths": [258], "pairs": [129]})", all)),
            "train, slice 0: found 129 pairs, expected at most 128, the keys of a vocabulary of 256");
  for (const char* json :
       {R"({"power_a": 0})", R"({"form": "other"})", R"({"train": {"rows": [0]}})", R"({"pairs": [4]})"})
    EXPECT_THROW(test::read_options(plugin_, json), UserError) << json;
}

TEST(Distinct, EveryOrderedChoiceIsEquallyLikely) {
  // 5 * 4 * 3 choices of three numbers of five, and all of four.
  std::map<Row, double> three, four;
  mqar::Distinct distinct(4);
  for (std::uint64_t index = 0; index < 30000; ++index) {
    Draws draws(3, Purpose::statistics, index);
    Row out(3), all(4);
    distinct.draw(draws, 10, 5, out);
    distinct.draw(draws, 0, 4, all);
    three[out] += 1.0;
    four[all] += 1.0;
  }
  for (const auto& [counts, choices] : {std::pair{three, 60U}, {four, 24U}}) {
    ASSERT_EQ(counts.size(), choices);
    std::vector<double> values;
    for (const auto& [choice, count] : counts) {
      EXPECT_EQ(std::set(choice.begin(), choice.end()).size(), choice.size());
      values.push_back(count);
    }
    test::expect_uniform(values, "choices");
  }
  EXPECT_EQ(three.begin()->first.front(), 10);
  EXPECT_EQ(three.rbegin()->first.front(), 14);
}

TEST(Distinct, ManyOfMany) {
  for (const std::size_t count : {1UL, 255UL, 256UL, 4095UL}) {
    mqar::Distinct distinct(count);
    Draws draws(1, Purpose::statistics, count);
    Row out(count);
    distinct.draw(draws, 1, 4095, out);
    std::sort(out.begin(), out.end());
    EXPECT_EQ(std::adjacent_find(out.begin(), out.end()), out.end());
    EXPECT_GE(out.front(), 1);
    EXPECT_LE(out.back(), 4095);
  }
}

}  // namespace
}  // namespace phasor
