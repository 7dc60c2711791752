#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/nn/splits.h"
#include "plugins/tasks/state_tracking/group.h"
#include "tests/plugins/task_rows.h"

namespace phasor {
namespace {

using state_tracking::Group;
using Row = std::vector<std::int32_t>;

struct Rows {
  Row tokens, targets;
  bool operator==(const Rows&) const = default;
};

class StateTracking : public testing::Test {
 protected:
  std::unique_ptr<Registry> registry_ = test::load({test::shipped("state_tracking")});
  const TaskPlugin& plugin_ = *registry_->find_task("state_tracking");

  std::unique_ptr<Task> make(const std::string& json) const {
    const auto options = test::read_options(plugin_, json);
    EXPECT_EQ(plugin_.refuses(*options), std::nullopt) << json;
    return plugin_.make(*options);
  }
  std::optional<std::string> refusal(const std::string& json) const {
    return plugin_.refuses(*test::read_options(plugin_, json));
  }
  static Rows row(const Task& task, const Slice& slice, std::uint64_t seed, std::int64_t index) {
    const auto count = static_cast<std::size_t>(task.tokens(slice));
    Rows out{Row(count, -7), Row(count, -7)};
    task.sample(slice, seed, index, {out.tokens, out.targets, {}});
    return out;
  }
};

/// Prefix products of a word.
std::vector<std::int64_t> labels(const std::string& name, const std::vector<std::int64_t>& word) {
  const Group group(name);
  std::vector<std::int64_t> out;
  std::int64_t state = 0;
  for (const std::int64_t element : word) out.push_back(state = group.product(state, element));
  return out;
}

const char* const small_groups[] = {"Z2", "Z3", "Z5", "Z7", "S2",      "S3",      "S4",      "A3",
                                    "A4", "A5", "S5", "Z6", "S2_x_Z3", "Z2_x_Z2", "A4_x_S3", "Z2_x_S3_x_Z5"};

using Word = std::vector<std::int64_t>;

TEST(Groups, WorkedExamples) {
  EXPECT_EQ(labels("S2", {0, 1, 1, 0, 0, 0, 1, 1}), (Word{0, 1, 0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(labels("S3", {3, 4, 0, 0, 5, 2}), (Word{3, 0, 0, 0, 5, 3}));
  EXPECT_EQ(labels("S3", {4, 0, 2, 4, 1, 5}), (Word{4, 4, 1, 2, 3, 1}));
  EXPECT_EQ(labels("Z5", {3, 3, 0, 0, 4, 2}), (Word{3, 1, 1, 1, 0, 2}));
  EXPECT_EQ(labels("S2_x_Z3", {2, 3, 4, 0, 0}), (Word{2, 5, 0, 0, 0}));
  EXPECT_EQ(labels("S3", {2, 5, 0, 0, 5, 1}), (Word{2, 4, 4, 4, 2, 3}));
}

TEST(Groups, TableOfS3) {
  const std::int64_t table[6][6] = {{0, 1, 2, 3, 4, 5}, {1, 0, 4, 5, 2, 3}, {2, 3, 0, 1, 5, 4},
                                    {3, 2, 5, 4, 0, 1}, {4, 5, 1, 0, 3, 2}, {5, 4, 3, 2, 1, 0}};
  const Group s3("S3");
  for (std::int64_t a = 0; a < 6; ++a) {
    for (std::int64_t b = 0; b < 6; ++b) EXPECT_EQ(s3.product(a, b), table[a][b]) << a << " " << b;
  }
}

TEST(Groups, AlternatingGroupsKeepTheOrderOfTheSymmetricOnes) {
  const std::vector<std::pair<std::string, Word>> cases = {{"3", {0, 3, 4}},
                                                           {"4", {0, 3, 4, 7, 8, 11, 12, 15, 16, 19, 20, 23}}};
  for (const auto& [n, inside] : cases) {
    const Group all("S" + n), even("A" + n);
    ASSERT_EQ(even.order(), static_cast<std::int64_t>(inside.size()));
    for (std::int64_t a = 0; a < even.order(); ++a) {
      for (std::int64_t b = 0; b < even.order(); ++b) {
        const auto at = [&](std::int64_t i) { return inside[static_cast<std::size_t>(i)]; };
        EXPECT_EQ(at(even.product(a, b)), all.product(at(a), at(b)));
      }
    }
  }
}

TEST(Groups, AreGroups) {
  for (const std::string name : small_groups) {
    const Group group(name);
    const std::int64_t n = group.order();
    for (std::int64_t a = 0; a < n; ++a) {
      EXPECT_EQ(group.product(0, a), a) << name;
      EXPECT_EQ(group.product(a, 0), a) << name;
      std::set<std::int64_t> row, column;
      for (std::int64_t b = 0; b < n; ++b) {
        row.insert(group.product(a, b));
        column.insert(group.product(b, a));
      }
      EXPECT_EQ(row.size(), static_cast<std::size_t>(n)) << name << " row " << a;
      EXPECT_EQ(column.size(), static_cast<std::size_t>(n)) << name << " column " << a;
      EXPECT_EQ(*row.begin(), 0);
      EXPECT_EQ(*row.rbegin(), n - 1);
    }
    const std::int64_t step = n > 30 ? n / 13 : 1;
    for (std::int64_t a = 0; a < n; a += step) {
      for (std::int64_t b = 0; b < n; b += step) {
        for (std::int64_t c = 0; c < n; c += step) {
          ASSERT_EQ(group.product(group.product(a, b), c), group.product(a, group.product(b, c))) << name;
        }
      }
    }
  }
}

TEST(Groups, Orders) {
  const std::vector<std::pair<std::string, std::int64_t>> orders = {
      {"Z2", 2},    {"S2", 2},       {"A3", 3},           {"S4", 24},         {"A5", 60},
      {"S5", 120},  {"S6", 720},     {"A7", 2520},        {"S2_x_Z3", 6},     {"A4_x_S3", 72},
      {"S7", 5040}, {"Z5040", 5040}, {"Z70_x_Z72", 5040}, {"Z2_x_Z2_x_Z2", 8}};
  for (const auto& [name, order] : orders) {
    EXPECT_EQ(Group::refuses(name), std::nullopt) << name;
    EXPECT_EQ(Group(name).order(), order) << name;
  }
  EXPECT_EQ(Group("S7").product(5039, 5039), 0) << "reversing twice";
}

TEST(Groups, ProductsAreComponentwise) {
  const Group product("A4_x_S3"), left("A4"), right("S3");
  for (std::int64_t a = 0; a < 72; ++a) {
    for (std::int64_t b = 0; b < 72; ++b) {
      EXPECT_EQ(product.product(a, b), left.product(a / 6, b / 6) * 6 + right.product(a % 6, b % 6));
    }
  }
}

TEST(Groups, RefusesWithTheReason) {
  const auto refusal = [](const std::string& name) { return Group::refuses(name).value_or("accepted"); };
  for (const std::string name : {"", "S", "3", "s3", "D4", "S03", "S-3", "S3 ", " S3", "S3_limit_to_2", "S5_only_swaps",
                                 "S2xZ3", "S2_x_", "_x_S2", "S2_x__x_Z3", "Z0", "S3.0", "Zn"}) {
    EXPECT_EQ(refusal(name),
              "group \"" + name +
                  "\": expected Zn (cyclic), Sn (all permutations) or An (the even ones) with a number n, or a "
                  "product such as S2_x_Z3");
  }
  for (const std::string name : {"Z1", "S1", "A1", "A2", "S3_x_Z1"}) {
    EXPECT_NE(refusal(name).find("has one element only"), std::string::npos) << refusal(name);
  }
  EXPECT_NE(refusal("S3_x_Z1").find("Z1 has one"), std::string::npos);
  for (const std::string name : {"S8", "A8", "Z5041", "S7_x_Z2", "Z100_x_Z100", "S99999999999999999999", "A1000000",
                                 "S7_x_S7_x_S7_x_S7_x_S7_x_S7_x_S7"}) {
    EXPECT_NE(refusal(name).find("found more than 5040 elements, expected at most 5040"), std::string::npos)
        << refusal(name);
  }
}

TEST_F(StateTracking, SlicesFollowTheFile) {
  const auto task = make(R"({"group": "S3", "count_bos": false,
    "train": {"rows": 10000, "length": 32}, "valid": {"rows": 1000, "length": 31},
    "test": {"rows": 4000, "lengths": [32, 64, 96, 128]}})");
  EXPECT_EQ(task->label(), "S3");
  EXPECT_EQ(task->vocabulary(), 13);
  EXPECT_DOUBLE_EQ(task->chance(), 1.0 / 6.0);
  const auto train = task->slices(Split::train), valid = task->slices(Split::valid), test = task->slices(Split::test);
  ASSERT_EQ(train.size(), 1U);
  EXPECT_EQ(train[0].length, 32);
  EXPECT_EQ(train[0].rows, 10000);
  ASSERT_EQ(valid.size(), 1U);
  EXPECT_EQ(valid[0].length, 31);
  EXPECT_EQ(valid[0].rows, 1000);
  EXPECT_EQ(valid[0].split, Split::valid);
  ASSERT_EQ(test.size(), 4U);
  EXPECT_EQ(test[3].length, 128);
  EXPECT_EQ(test[3].rows, 4000);
  EXPECT_EQ(task->tokens(test[3]), 129);
  EXPECT_EQ(task->max_targets(test[3]), 128);
}

TEST_F(StateTracking, VocabulariesAndDefaults) {
  EXPECT_EQ(make("{}")->label(), "S2");
  for (const auto& [group, size] : {std::pair{"S2", 9}, {"S3", 13}, {"S4", 31}, {"A5", 67}, {"S5", 127}}) {
    EXPECT_EQ(make(R"({"group": ")" + std::string(group) + "\"}")->vocabulary(), size);
  }
}

TEST_F(StateTracking, RowsFollowTheRecurrence) {
  for (const std::string name : small_groups) {
    const auto task = make(R"({"group": ")" + name + R"("})");
    const Group group(name);
    const Slice slice{Split::train, 40, 100};
    for (std::int64_t index = 0; index < 20; ++index) {
      const Rows r = row(*task, slice, 3, index);
      EXPECT_EQ(r.tokens[0], group.order() + 1);
      EXPECT_EQ(r.targets[0], -1);
      EXPECT_EQ(r.targets[1], r.tokens[1]) << "the first label is the first element";
      std::int64_t state = 0;
      for (std::size_t t = 1; t < r.tokens.size(); ++t) {
        ASSERT_GE(r.tokens[t], 0);
        ASSERT_LT(r.tokens[t], group.order());
        state = group.product(state, r.tokens[t]);
        EXPECT_EQ(r.targets[t], state) << name << " row " << index << " at " << t;
      }
    }
  }
}

TEST_F(StateTracking, CountBosScoresTheFirstPosition) {
  const auto with = make(R"({"group": "S3", "count_bos": true})"), without = make(R"({"group": "S3"})");
  const Slice slice{Split::valid, 8, 10};
  EXPECT_EQ(with->max_targets(slice), 9);
  EXPECT_EQ(without->max_targets(slice), 8);
  Rows a = row(*with, slice, 1, 4);
  const Rows b = row(*without, slice, 1, 4);
  EXPECT_EQ(a.targets[0], 7);
  a.targets[0] = -1;
  EXPECT_EQ(a, b);
}

TEST_F(StateTracking, PureAndFreeOfThreads) {
  const auto task = make(R"({"group": "A5"})");
  const Slice slice{Split::train, 33, 400};
  std::vector<Rows> alone(400), shared(400);
  for (std::size_t i = 0; i < 400; ++i) alone[i] = row(*task, slice, 11, static_cast<std::int64_t>(i));
  std::vector<std::thread> threads;
  for (std::size_t worker = 0; worker < 4; ++worker) {
    threads.emplace_back([&, worker] {
      for (std::size_t i = 400; i-- > 0;) {
        if (i % 4 == worker) shared[i] = row(*task, slice, 11, static_cast<std::int64_t>(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(alone, shared);
  EXPECT_EQ(row(*make(R"({"group": "A5", "train": {"rows": 7}})"), slice, 11, 5), alone[5]) << "sizes do not matter";
}

TEST_F(StateTracking, KnownRows) {
  // Stored results depend on these numbers; a change of them raises the revision.
  EXPECT_EQ(plugin_.info.revision, 2);
  const auto task = make(R"({"group": "S5"})");
  EXPECT_EQ(row(*task, {Split::train, 8, 10}, 0, 0).tokens, (Row{121, 40, 32, 89, 63, 26, 95, 50, 72}));
  EXPECT_EQ(row(*task, {Split::test, 8, 10}, 20261129, 3).tokens, (Row{121, 97, 76, 96, 102, 117, 114, 27, 13}));
}

TEST_F(StateTracking, SeedsSplitsLengthsAndRowsDiffer) {
  const auto task = make(R"({"group": "S4"})");
  std::set<Row> heads;
  int made = 0;
  for (const Split split : {Split::train, Split::valid, Split::test}) {
    for (const std::int64_t length : {20, 21, 40}) {
      for (const std::uint64_t seed : {0ULL, 1ULL, 1ULL << 63U}) {
        for (const std::int64_t index : {0LL, 1LL, 1LL << 40U}) {
          Row tokens = row(*task, {split, length, 10}, seed, index).tokens;
          tokens.resize(21);
          heads.insert(tokens);
          ++made;
        }
      }
    }
  }
  EXPECT_EQ(heads.size(), static_cast<std::size_t>(made));
}

TEST_F(StateTracking, SplitsShareNoRowOfALargeSpace) {
  // Exactly 2^24 words: drawn freely, 30,000 rows of test would share about 53 with 30,000 of train.
  const auto task = make(R"({"group": "S2"})");
  std::vector<std::uint64_t> words[3];
  for (const Split split : {Split::train, Split::valid, Split::test}) {
    const Slice slice{split, 24, 30000};
    for (std::int64_t index = 0; index < slice.rows; ++index) {
      test::MadeRow row = test::make_row(*task, slice, 4, index);
      const auto units = task->units(slice, row.sample());
      ASSERT_EQ(units.size(), 1U);
      ASSERT_TRUE(units[0].disjoint);
      ASSERT_EQ(units[0].log2_space, 24.0);
      ASSERT_EQ(units[0].hash, content_hash(row.tokens));
      ASSERT_EQ(split_of(units[0].hash), split);
      words[static_cast<std::size_t>(split)].push_back(units[0].hash);
    }
  }
  EXPECT_EQ(test::shared(words[1], words[0]), 0);
  EXPECT_EQ(test::shared(words[2], words[0]), 0);
  EXPECT_EQ(test::shared(words[2], words[1]), 0);
}

TEST_F(StateTracking, SmallSpacesOverlapByChance) {
  const auto task = make(R"({"group": "S2"})");
  for (const std::int64_t length : {8, 14, 23}) {
    const std::int64_t rows = length == 8 ? 200 : 10000;
    const auto keep = [](const Unit& unit) { return !unit.disjoint; };
    const auto train = test::unit_hashes(*task, {Split::train, length, rows}, 4, rows, keep);
    const auto tested = test::unit_hashes(*task, {Split::test, length, rows}, 4, rows, keep);
    ASSERT_EQ(train.size(), static_cast<std::size_t>(rows));
    test::expect_by_chance(test::shared(tested, train), tested.size(), train.size(),
                           std::pow(2.0, static_cast<double>(length)));
  }
}

TEST_F(StateTracking, AnyWorkersMakeTheSameRows) { test::expect_pure(*make(R"({"group": "S5"})")); }

TEST_F(StateTracking, InvariantsOfTenThousandRows) {
  const auto task = make(R"({"group": "S4"})");
  const Group group("S4");
  const Slice slice = task->slices(Split::valid).front();
  std::set<Row> rows;
  for (std::int64_t index = 0; index < 10000; ++index) {
    const test::MadeRow row = test::make_row(*task, slice, 6, index);
    test::expect_in_range(*task, slice, row);
    std::int64_t state = 0;
    for (std::size_t t = 1; t < row.tokens.size(); ++t) {
      ASSERT_LT(row.tokens[t], 24);
      ASSERT_EQ(row.targets[t], state = group.product(state, row.tokens[t]));
    }
    ASSERT_EQ(row.tokens[0], 25);
    rows.insert(row.tokens);
  }
  EXPECT_EQ(rows.size(), 10000U);
}

TEST_F(StateTracking, InputsAndLabelsAreUniform) {
  for (const std::string name : {"S3", "Z5", "A4"}) {
    const auto task = make(R"({"group": ")" + name + R"("})");
    const auto order = static_cast<std::size_t>(Group(name).order());
    const Slice slice{Split::train, 50, 4000};
    std::vector<double> tokens(order), targets(order);
    double equal = 0.0;
    for (std::int64_t index = 0; index < 4000; ++index) {
      const Rows r = row(*task, slice, 5, index);
      for (std::size_t t = 1; t <= 50; ++t) {
        tokens[static_cast<std::size_t>(r.tokens[t])] += 1.0;
        targets[static_cast<std::size_t>(r.targets[t])] += 1.0;
        if (t > 1) equal += r.targets[t] == r.targets[t - 1] ? 1.0 : 0.0;
      }
    }
    const double expected = 200000.0 / static_cast<double>(order);
    double inputs = 0.0, outputs = 0.0;  // chi squared
    for (std::size_t i = 0; i < order; ++i) {
      inputs += (tokens[i] - expected) * (tokens[i] - expected) / expected;
      outputs += (targets[i] - expected) * (targets[i] - expected) / expected;
    }
    EXPECT_LT(inputs, 35.0) << name;  // at most 11 degrees of freedom: beyond 1 in 4000
    EXPECT_LT(outputs, 35.0) << name;
    EXPECT_NEAR(equal / (4000.0 * 49.0), 1.0 / static_cast<double>(order), 0.005) << name;
  }
}

TEST_F(StateTracking, RefusesBadOptions) {
  EXPECT_NE(refusal(R"({"group": "Z1"})").value_or("").find("one element only"), std::string::npos);
  EXPECT_EQ(refusal(R"({"test": {"lengths": []}})"), "test.lengths: found an empty list, expected at least one length");
  EXPECT_EQ(refusal(R"({"test": {"lengths": [64, 32, 64]}})"),
            "test.lengths: found 64 twice, expected each length once");
  EXPECT_EQ(refusal("{}"), std::nullopt);
  for (const char* json :
       {R"({"train": {"length": 0}})", R"({"train": {"rows": 0}})", R"({"test": {"lengths": [32, 0]}})",
        R"({"grup": "S2"})", R"({"valid": {"length": 2.5}})", R"({"group": 5})"}) {
    EXPECT_THROW(test::read_options(plugin_, json), UserError) << json;
  }
}

}  // namespace
}  // namespace phasor
