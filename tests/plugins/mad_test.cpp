#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/nn/splits.h"
#include "tests/plugins/task_rows.h"

namespace phasor {
namespace {

using test::MadeRow;
using test::make_row;
using test::Mean;
using test::Row;

/// All tasks of the plugin, by name without "mad_".
class MadTest : public testing::Test {
 protected:
  std::unique_ptr<Task> make(const std::string& name, const std::string& json = "{}") const {
    const TaskPlugin& plugin = *registry_->find_task("mad_" + name);
    const auto options = test::read_options(plugin, json);
    EXPECT_EQ(plugin.refuses(*options), std::nullopt) << name << " " << json;
    return plugin.make(*options);
  }
  std::string refusal(const std::string& name, const std::string& json) const {
    const TaskPlugin& plugin = *registry_->find_task("mad_" + name);
    return plugin.refuses(*test::read_options(plugin, json)).value_or("accepted");
  }
  std::unique_ptr<Registry> registry_ = test::load({test::shipped("mad")});
};

const std::vector<std::string> names = {"recall", "noisy_recall", "fuzzy_recall", "memorisation", "selective_copying",
                                        "compression"};

/// The map that rows of memorisation show, or what is wrong with them.
struct Map {
  std::map<std::int32_t, std::int32_t> value_of;
  std::string problem;
  void add(const Row& tokens, const Row& targets, std::int32_t vocabulary) {
    const std::int32_t keys = (vocabulary - 1) / 2;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const bool asks = t % 2 == 1;
      if (asks != (tokens[t] == vocabulary - 1) || (!asks && (tokens[t] < 0 || tokens[t] >= keys)))
        problem = "no key and no question";
      if (!asks && targets[t] != -1) problem = "a target at a key";
      if (!asks) continue;
      const auto [entry, fresh] = value_of.emplace(tokens[t - 1], targets[t]);
      if (!fresh && entry->second != targets[t]) problem = "two values of a key";
      if (targets[t] < keys || targets[t] >= vocabulary - 1) problem = "a value that is none";
    }
  }
};

TEST_F(MadTest, MemorisationKeepsOneMap) {
  for (const std::int32_t vocabulary : {3, 10, 255, 256}) {
    const auto task = make("memorisation", R"({"vocabulary": )" + std::to_string(vocabulary) + "}");
    Map map;
    std::vector<double> keys(static_cast<std::size_t>((vocabulary - 1) / 2));
    for (const Split split : {Split::train, Split::valid, Split::test})
      for (std::int64_t index = 0; index < 4000; ++index) {
        const MadeRow row = make_row(*task, task->slices(split).front(), static_cast<std::uint64_t>(split) + 4, index);
        test::expect_in_range(*task, task->slices(split).front(), row);
        map.add(row.tokens, row.targets, vocabulary);
        for (std::size_t t = 0; t < row.tokens.size(); t += 2) keys[static_cast<std::size_t>(row.tokens[t])] += 1.0;
      }
    EXPECT_EQ(map.problem, "");
    std::set<std::int32_t> values;
    for (const auto& [key, value] : map.value_of) values.insert(value);
    EXPECT_EQ(map.value_of.size(), keys.size());
    EXPECT_EQ(values.size(), keys.size()) << "no value of two keys";
    if (keys.size() > 1) test::expect_uniform(keys, "keys");
    EXPECT_DOUBLE_EQ(task->chance(), 1.0 / static_cast<double>(keys.size()));
  }
  Map example;
  example.add({2, 9, 2, 9, 2, 9, 2, 9}, {-1, 8, -1, 8, -1, 8, -1, 8}, 10);
  EXPECT_EQ(example.problem, "");
  example.add({2, 9}, {-1, 7}, 10);
  EXPECT_EQ(example.problem, "two values of a key");
}

TEST_F(MadTest, MemorisationTrainingShowsTheStatedShareOfKeys) {
  // 4,096 keys with replacement out of n; the variance of how many are seen is n (q - (1 + c) q^2), q = e^-c, c = 4096
  // / n.
  for (const auto& [vocabulary, stated] : {std::pair{256, 1.0}, {2048, .982}, {4096, .865}, {8192, .632}}) {
    const auto task = make("memorisation", R"({"vocabulary": )" + std::to_string(vocabulary) + "}");
    const Slice slice = task->slices(Split::train).front();
    EXPECT_EQ(slice.rows, 256);
    Map map;
    for (std::int64_t index = 0; index < slice.rows; ++index) {
      const MadeRow row = make_row(*task, slice, 1, index);
      map.add(row.tokens, row.targets, vocabulary);
    }
    const double keys = (vocabulary - 1) / 2, c = 4096.0 / keys, q = std::exp(-c);
    const double exact = 1.0 - std::pow(1.0 - 1.0 / keys, 4096.0);
    EXPECT_NEAR(exact, stated, 0.0006);
    EXPECT_NEAR(static_cast<double>(map.value_of.size()) / keys, exact,
                5.0 * std::sqrt((q - (1.0 + c) * q * q) / keys) + 1e-9);
  }
}

/// What is wrong with a row of selective copying, or nothing; adds the blanks before each data token.
std::string copying_problem(const Row& tokens, const Row& targets, std::int32_t vocabulary, std::size_t copied,
                            std::vector<double>* blanks = nullptr) {
  const std::int32_t blank = vocabulary - 2, asks = vocabulary - 1;
  const std::size_t length = tokens.size(), question = length - copied - 1;
  Row data;
  double waiting = 0.0;
  for (std::size_t t = 0; t < length; ++t) {
    if ((tokens[t] == asks) != (t == question)) return "a question elsewhere";
    if (t > question ? tokens[t] != blank : false) return "no blank after the question";
    if (t <= question && targets[t] != -1) return "a target before the end";
    if (t >= question) continue;
    if (tokens[t] == blank) {
      waiting += 1.0;
      continue;
    }
    if (blanks != nullptr) blanks->push_back(waiting);
    waiting = 0.0;
    data.push_back(tokens[t]);
  }
  if (waiting > 0.0) return "a blank after the last data token";
  if (data.size() != copied) return "too many data tokens";
  return data == Row(targets.end() - static_cast<std::ptrdiff_t>(copied), targets.end()) ? "" : "another copy";
}

TEST_F(MadTest, SelectiveCopyingKeepsTheInvariants) {
  const Row example = {4, 4, 2, 4, 3, 0, 4, 4, 4, 4, 3, 5, 4, 4, 4, 4};
  Row targets(16, -1);
  std::copy_n(Row{2, 3, 0, 3}.begin(), 4, targets.begin() + 12);
  EXPECT_EQ(copying_problem(example, targets, 6, 4), "");
  targets[12] = 3;
  EXPECT_EQ(copying_problem(example, targets, 6, 4), "another copy");
  for (const auto& [vocabulary, length, copied] :
       {std::tuple{16, 256, 16}, {128, 256, 96}, {6, 16, 4}, {3, 4, 1}, {16, 64, 8}}) {
    const auto task =
        make("selective_copying", R"({"vocabulary": )" + std::to_string(vocabulary) + R"(, "length": )" +
                                      std::to_string(length) + R"(, "copied": )" + std::to_string(copied) + "}");
    EXPECT_DOUBLE_EQ(task->chance(), 1.0 / (vocabulary - 2));
    for (const Split split : {Split::train, Split::valid, Split::test})
      for (std::int64_t index = 0; index < (split == Split::train ? 10000 : 1500); ++index) {
        const Slice slice = task->slices(split).front();
        const MadeRow row = make_row(*task, slice, 3, index);
        test::expect_in_range(*task, slice, row);
        ASSERT_EQ(copying_problem(row.tokens, row.targets, vocabulary, static_cast<std::size_t>(copied)), "") << index;
      }
  }
}

TEST_F(MadTest, BlanksAreMultinomial) {
  for (const auto& [copied, mean, stated] : {std::tuple{16, 13.94, 13.07}, {96, .656, .651}}) {
    const auto task = make("selective_copying", R"({"copied": )" + std::to_string(copied) + "}");
    const double slots = copied, count = 256.0 - 2.0 * slots - 1.0, variance = count / slots * (1.0 - 1.0 / slots);
    EXPECT_NEAR(count / slots, mean, .005);
    EXPECT_NEAR(variance, stated, .005);
    std::vector<Mean> slot(static_cast<std::size_t>(copied));
    Mean spread;
    std::vector<double> data(14);
    for (std::int64_t index = 0; index < 10000; ++index) {
      const MadeRow row = make_row(*task, task->slices(Split::train).front(), 1, index);
      std::vector<double> blanks;
      ASSERT_EQ(copying_problem(row.tokens, row.targets, 16, static_cast<std::size_t>(copied), &blanks), "");
      double squares = 0.0;
      for (std::size_t i = 0; i < blanks.size(); ++i) {
        slot[i].add(blanks[i]);
        squares += (blanks[i] - count / slots) * (blanks[i] - count / slots);
      }
      spread.add(squares / slots);
      for (auto t = row.targets.end() - copied; t < row.targets.end(); ++t) data[static_cast<std::size_t>(*t)] += 1.0;
    }
    for (const Mean& each : slot) test::expect_mean(each, 10000, count / slots, 0, 0, "blanks before a token");
    test::expect_mean(spread, 10000, variance, 0, 0, "their variance");
    test::expect_uniform(data, "data tokens");
  }
}

/// What is wrong with a row of compression, or nothing.
std::string compression_problem(const Row& tokens, const Row& targets, std::int32_t vocabulary) {
  if (targets != tokens) return "targets that are not the tokens";
  for (std::size_t t = 0; t < tokens.size(); ++t)
    if ((t + 1 == tokens.size()) != (tokens[t] == vocabulary - 1)) return "an end elsewhere";
  return "";
}

TEST_F(MadTest, CompressionKeepsTheInvariants) {
  const Row example = {3, 4, 4, 2, 4, 4, 4, 5};
  EXPECT_EQ(compression_problem(example, example, 6), "");
  EXPECT_EQ(compression_problem(example, example, 7), "an end elsewhere");
  EXPECT_EQ(compression_problem(example, Row{3, 4, 4, 2, 4, 4, 4, -1}, 6), "targets that are not the tokens");
  for (const auto& [vocabulary, length] : {std::pair{16, 32}, {128, 256}, {6, 8}, {3, 2}}) {
    const auto task = make("compression", R"({"vocabulary": )" + std::to_string(vocabulary) + R"(, "length": )" +
                                              std::to_string(length) + "}");
    for (const Split split : {Split::train, Split::valid, Split::test}) {
      const Slice slice = task->slices(split).front();
      EXPECT_EQ(task->tokens(slice), length);
      EXPECT_EQ(task->max_targets(slice), length);
      EXPECT_EQ(task->prompt(slice), 0);
      std::vector<double> data(static_cast<std::size_t>(vocabulary - 1)), first(data);
      for (std::int64_t index = 0; index < 6000; ++index) {
        const MadeRow row = make_row(*task, slice, 3, index);
        test::expect_in_range(*task, slice, row);
        ASSERT_EQ(compression_problem(row.tokens, row.targets, vocabulary), "") << index;
        for (std::size_t t = 0; t + 1 < row.tokens.size(); ++t) data[static_cast<std::size_t>(row.tokens[t])] += 1.0;
        first[static_cast<std::size_t>(row.tokens[0])] += 1.0;
      }
      test::expect_uniform(data, "data tokens");
      test::expect_uniform(first, "first tokens");
    }
  }
}

TEST_F(MadTest, CompressionIsReadAtItsEndAndHasTheStatedFloors) {
  for (const std::string& name : names)
    EXPECT_EQ(make(name)->reading(), name == "compression" ? Reading::last : Reading::positions) << name;
  // tasks.md 2.5: who knows the last token and says the same for all others.
  const auto task = make("compression");
  std::map<std::int32_t, std::pair<double, double>> of_class;  // right, scored
  double right = 0.0, scored = 0.0, classes = 0.0;
  for (std::int64_t index = 0; index < 12800; ++index) {
    const MadeRow row = make_row(*task, task->slices(Split::train).front(), 1, index);
    for (std::size_t t = 0; t < row.targets.size(); ++t) {
      const bool hit = row.targets[t] == (t + 1 == row.targets.size() ? 15 : 7);
      of_class[row.targets[t]].first += hit;
      of_class[row.targets[t]].second += 1.0;
      right += hit;
      scored += 1.0;
    }
  }
  for (const auto& [target, count] : of_class) classes += count.first / count.second;
  EXPECT_EQ(of_class.size(), 16U);
  EXPECT_DOUBLE_EQ(classes / 16.0, .125);
  EXPECT_NEAR(task->chance(), .096, .0005);
  EXPECT_NEAR(right / scored, task->chance(), 5.0 * std::sqrt(1.0 / 15.0 * 14.0 / 15.0 / scored));
}

TEST_F(MadTest, Pure) {
  for (const std::string& name : names) test::expect_pure(*make(name));
}

TEST_F(MadTest, CleanRowsAreDifferentAndInTheirSplit) {
  for (const std::string& name : names) {
    const auto task = make(name);
    std::set<Row> all;
    std::size_t count = 0;
    for (const Split split : {Split::train, Split::valid, Split::test}) {
      const Slice slice = task->slices(split).front();
      EXPECT_EQ(slice.rows, split != Split::train ? 1280 : (name == "memorisation" ? 256 : 12800));
      for (std::int64_t index = 0; index < slice.rows; ++index, ++count) {
        MadeRow row = make_row(*task, slice, 1, index);
        const auto units = task->units(slice, row.sample());
        ASSERT_EQ(units.size(), 1U);
        ASSERT_EQ(units[0].hash, content_hash(row.tokens));
        ASSERT_TRUE(units[0].disjoint);
        ASSERT_EQ(split_of(units[0].hash), split);
        all.insert(std::move(row.tokens));
      }
    }
    EXPECT_EQ(all.size(), count) << name;
  }
}

TEST_F(MadTest, SmallSpacesOverlapByChance) {
  // Two keys in four places, four in six, and the last space that is not divided: 63 keys in four places.
  for (const auto& [vocabulary, length] : {std::pair{6, 8}, {10, 12}, {128, 8}}) {
    const auto task = make("memorisation", R"({"vocabulary": )" + std::to_string(vocabulary) + R"(, "length": )" +
                                               std::to_string(length) + "}");
    const double space = std::pow((vocabulary - 1) / 2, length / 2);
    const auto keep = [](const Unit& unit) { return !unit.disjoint; };
    const std::int64_t rows = space < 100 ? 10 : (space < 5000 ? 2000 : 20000);
    const auto train = test::unit_hashes(*task, task->slices(Split::train).front(), 1, rows, keep);
    const auto tested = test::unit_hashes(*task, task->slices(Split::test).front(), 1, rows, keep);
    ASSERT_EQ(train.size(), static_cast<std::size_t>(rows));
    test::expect_by_chance(test::shared(tested, train), tested.size(), train.size(), space);
  }
  // 64^4 = 2^24 rows are divided.
  const auto divided = make("memorisation", R"({"vocabulary": 129, "length": 8})");
  MadeRow row = make_row(*divided, divided->slices(Split::test).front(), 1, 0);
  const auto units = divided->units(divided->slices(Split::test).front(), row.sample());
  EXPECT_TRUE(units[0].disjoint);
  EXPECT_DOUBLE_EQ(units[0].log2_space, 24.0);
}

TEST_F(MadTest, NoRowIsLikelierThanTold) {
  // Spaces of a few bits: the most frequent of 20,000 rows, less 5 standard deviations, is below 2^-log2_space.
  for (const auto& [name, json] :
       {std::pair{"recall", R"({"vocabulary": 4, "length": 8})"},
        {"noisy_recall", R"({"vocabulary": 6, "noise_vocabulary": 2, "noise": 0.5, "length": 8})"},
        {"noisy_recall", R"({"vocabulary": 5, "noise_vocabulary": 1, "noise": 0.7, "length": 8})"},
        {"selective_copying", R"({"vocabulary": 4, "length": 10, "copied": 3})"},
        {"compression", R"({"vocabulary": 4, "length": 5})"},
        {"fuzzy_recall", R"({"vocabulary": 5, "length": 9, "key_size": 1, "value_size": 1})"},
        {"fuzzy_recall", R"({"vocabulary": 5, "length": 18, "key_size": 2, "value_size": 1})"}}) {
    const auto task = make(name, json);
    for (const Split split : {Split::train, Split::test}) {
      std::map<Row, double> count;
      double most = 0.0, space = 0.0;
      for (std::int64_t index = 0; index < 20000; ++index) {
        MadeRow row = make_row(*task, task->slices(split).front(), 1, index);
        const Unit unit = task->units(task->slices(split).front(), row.sample()).front();
        ASSERT_FALSE(unit.disjoint);
        space = unit.log2_space;
        most = std::max(most, count[row.tokens] += 1.0);
      }
      EXPECT_LE(most - 5.0 * std::sqrt(most), 20000.0 * std::exp2(-space)) << name << " " << json;
      EXPECT_GT(most, 5.0) << "a space that is too large for this test";
    }
  }
}

/// What a released pipeline makes: different rows of train and of test, and the share of test rows that train shows.
struct Released {
  std::size_t train = 0, test = 0;
  double shared = 0.0;
};
Released count_released(const Task& task) {
  const auto rows_of = [&](Split split) {
    std::vector<Row> rows;
    const Slice slice = task.slices(split).front();
    for (std::int64_t index = 0; index < slice.rows; ++index) {
      MadeRow row = make_row(task, slice, split == Split::train ? 1 : 2, index);
      EXPECT_FALSE(task.units(slice, row.sample()).front().disjoint);
      rows.push_back(std::move(row.tokens));
    }
    return rows;
  };
  const std::vector<Row> train = rows_of(Split::train), test = rows_of(Split::test);
  const std::set<Row> seen(train.begin(), train.end()), tested(test.begin(), test.end());
  const auto shared = std::count_if(test.begin(), test.end(), [&](const Row& row) { return seen.contains(row); });
  return {seen.size(), tested.size(), static_cast<double>(shared) / static_cast<double>(test.size())};
}

TEST_F(MadTest, ReleasedRowsRepeatAsMeasured) {
  // tasks.md 2.9, paper.md 3.7. Selective copying had 2,000 and 280 different rows there, as some workers took more
  // chunks than others; the share of test rows in train is that of first chunks however the others are dealt.
  struct Case {
    const char *name, *json;
    Released expected;
  };
  for (const Case& c : {Case{"recall", R"({"released_workers": 8})", {400, 40, 1.0}},
                        {"noisy_recall", R"({"released_workers": 8})", {400, 40, 1.0}},
                        {"fuzzy_recall", R"({"released_workers": 8, "as_reference": true})", {400, 40, 0.0}},
                        {"memorisation", R"({"released_workers": 8})", {8, 40, 0.2}},
                        {"selective_copying", R"({"released_workers": 8})", {1600, 160, 0.25}},
                        {"compression", R"({"released_workers": 8})", {400, 40, 1.0}},
                        {"recall", R"({"released_workers": 2})", {1600, 160, 1.0}},
                        {"compression", R"({"released_workers": 2})", {1600, 160, 1.0}},
                        {"recall", R"({"released_workers": 8, "train": {"rows": 800}})", {25, 40, 0.625}},
                        {"recall", R"({"released_workers": 8, "train": {"rows": 801}})", {26, 40, 0.65}}}) {
    const Released found = count_released(*make(c.name, c.json));
    EXPECT_EQ(found.train, c.expected.train) << c.name << c.json;
    EXPECT_EQ(found.test, c.expected.test) << c.name << c.json;
    EXPECT_NEAR(found.shared, c.expected.shared, 0.002) << c.name << c.json;
  }
  // 8 rows of 16 keys show .636 of the 127 keys on average; the reference's seed showed .646.
  const auto task = make("memorisation", R"({"released_workers": 8})");
  Map map;
  for (std::int64_t index = 0; index < 256; ++index) {
    const MadeRow row = make_row(*task, task->slices(Split::train).front(), 1, index);
    map.add(row.tokens, row.targets, 256);
  }
  const double c = 128.0 / 127.0, q = std::exp(-c);
  EXPECT_NEAR(static_cast<double>(map.value_of.size()) / 127.0, .6366,
              5.0 * std::sqrt((q - (1.0 + c) * q * q) / 127.0));
}

TEST_F(MadTest, ReleasedRowsAreRowsOfNoSeed) {
  for (const std::string& name : names) {
    const auto task = make(name, R"({"released_workers": 8})");
    const Slice tested = task->slices(Split::test).front();
    EXPECT_EQ(make_row(*task, tested, 1, 77), make_row(*task, tested, 2, 77));
    EXPECT_EQ(task->label().substr(task->label().size() - 9), " released");
  }
}

TEST_F(MadTest, ReleasedDataHaveCleanRowsOfValid) {
  for (const std::string& name : names) {
    const auto released = make(name, R"({"released_workers": 8})"), clean = make(name);
    std::set<Row> seen;
    for (std::int64_t index = 0; index < released->slices(Split::train).front().rows; ++index)
      seen.insert(make_row(*released, released->slices(Split::train).front(), 1, index).tokens);
    const Slice valid = released->slices(Split::valid).front();
    for (std::int64_t index = 0; index < valid.rows; ++index) {
      const MadeRow row = make_row(*released, valid, 5, index);
      ASSERT_EQ(row, make_row(*clean, valid, 5, index)) << name;
      ASSERT_FALSE(seen.contains(row.tokens)) << name << " " << index;
    }
  }
}

TEST_F(MadTest, KnownRows) {
  // Stored results depend on these numbers; a change of them raises the revision.
  const auto row = [&](const std::string& name, const std::string& json) {
    const auto task = make(name, json);
    EXPECT_EQ(registry_->find_task("mad_" + name)->info.revision, name == "compression" ? 1 : 2);
    return make_row(*task, task->slices(Split::train).front(), 0, 0).tokens;
  };
  EXPECT_EQ(row("recall", R"({"length": 12})"), (Row{3, 11, 4, 13, 6, 13, 0, 14, 5, 12, 6}));
  EXPECT_EQ(row("noisy_recall", R"({"length": 12, "noise": 0.4})"), (Row{0, 10, 22, 20, 0, 10, 0, 10, 1, 8, 1}));
  EXPECT_EQ(row("fuzzy_recall", R"({"length": 16})"), (Row{15, 15, 15, 15, 15, 1, 5, 10, 14, 6, 5, 1, 9, 6, 5, 1}));
  EXPECT_EQ(row("memorisation", R"({"length": 8})"), (Row{122, 255, 23, 255, 6, 255, 63, 255}));
  EXPECT_EQ(row("selective_copying", R"({"length": 16, "copied": 4})"),
            (Row{14, 14, 14, 1, 14, 12, 14, 3, 14, 14, 6, 15, 14, 14, 14, 14}));
  EXPECT_EQ(row("compression", R"({"length": 8})"), (Row{3, 11, 9, 13, 3, 3, 1, 15}));
  EXPECT_EQ(row("recall", R"({"length": 12, "released_workers": 8})"), (Row{0, 8, 0, 8, 2, 15, 4, 12, 6, 8, 0}));
}

TEST_F(MadTest, RefusesWithTheReason) {
  EXPECT_EQ(refusal("memorisation", R"({"length": 31})"), "length: found 31, expected an even number");
  EXPECT_EQ(refusal("memorisation", R"({"vocabulary": 2})"),
            "vocabulary: found 2, expected at least 3, a key, a value and what asks");
  EXPECT_EQ(refusal("selective_copying", R"({"length": 33})"),
            "length: found 33, expected at least 34, the data tokens twice, what asks and a blank");
  EXPECT_EQ(refusal("selective_copying", R"({"length": 34})"), "accepted");
  EXPECT_EQ(refusal("selective_copying", R"({"vocabulary": 2})"),
            "vocabulary: found 2, expected at least 3, what asks, the blank and data");
  EXPECT_EQ(refusal("compression", R"({"length": 1})"), "length: found 1, expected at least 2, a data token and the end");
  EXPECT_EQ(refusal("compression", R"({"vocabulary": 2})"),
            "vocabulary: found 2, expected at least 3, two data tokens and the end");
  for (const std::string& name : names)
    EXPECT_EQ(refusal(name, R"({"released_workers": 1})"),
              "released_workers: found 1, expected 0 or at least 2: the reference has no fault with one process");
}

}  // namespace
}  // namespace phasor
