#include <gtest/gtest.h>

#include <algorithm>

#include "tests/analysis/sweep.h"

namespace phasor::analysis {
namespace {

/// Two rates on two seeds, and three fresh seeds; the manifest names the fresh trials of `chosen` alone, as the runner does.
Sweep confirmed(std::int64_t chosen) {
  results::ManifestAxis seeds = values("seed", "replicate", "seed", {0, 1, 100, 101, 102});
  seeds.fresh = 3;
  Sweep sweep({points("variant", "row", {"A"}), values("lr", "select", "optimizer.lr", {0.1, 0.2}), seeds});
  std::erase_if(sweep.manifest.trials, [&](const auto& trial) { return trial.at[2] >= 2 && trial.at[1] != chosen; });
  for (std::int64_t seed = 0; seed < 2; ++seed) {
    sweep.record({0, 0, seed}, 0.5, 0.9);
    sweep.record({0, 1, seed}, 0.8, 0.99);  // is chosen; lucky on test, too
  }
  return sweep;
}

void expect_words(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << "expected: " << words << "\nfound: " << text;
}

TEST(Confirm, OnlyFreshReplicatesAreReported) {
  Sweep sweep = confirmed(1);
  const double tests[] = {0.6, 0.7, 0.8};
  for (std::int64_t i = 0; i < 3; ++i) sweep.record({0, 1, 2 + i}, 0.1, tests[i]);  // what valid says of them does not matter
  const auto line = read_csv(sweep.text(Format::csv, Form::longer)).at(0);
  EXPECT_EQ(line.at("optimizer.lr"), "0.2");
  EXPECT_EQ(line.at("mean"), "0.7000");
  EXPECT_EQ(line.at("n"), "3");
  EXPECT_EQ(line.at("expected"), "3");
  EXPECT_EQ(line.at("trials"), "7");  // four to choose, three to confirm
  EXPECT_EQ(line.at("select_seeds"), "0;1");
  const auto candidates = read_csv(sweep.text(Format::csv, Form::candidates));
  EXPECT_EQ(candidates.at(1).at("expected"), "2");  // the choice sees none of the fresh ones
  EXPECT_EQ(candidates.at(1).at("score"), "0.8000");
  const Table table = sweep.table();
  EXPECT_EQ(table.chosen, (std::vector<std::vector<std::int64_t>>{{0, 1, -1}}));
  EXPECT_EQ(table.expected, 7);
  EXPECT_EQ(table.done, 7);
  EXPECT_TRUE(table.complete());
  const auto trials = read_csv(sweep.text(Format::csv, Form::trials));
  ASSERT_EQ(trials.size(), 7u);
  EXPECT_EQ(std::count_if(trials.begin(), trials.end(), [](const auto& t) { return t.at("phase") == "confirm"; }), 3);
  EXPECT_EQ(std::count_if(trials.begin(), trials.end(), [](const auto& t) { return t.at("chosen") == "yes"; }), 5);
  const std::string text = sweep.text(Format::terminal, Form::wide);
  expect_words(text, "over 3 confirm seeds at the last evaluation");
  expect_words(text, "chosen on valid of seed 0, 1; reported on test of 3 fresh ones, which chose nothing");
  EXPECT_EQ(text.find("biased"), std::string::npos) << text;
}

TEST(Confirm, WithoutItTheStatementStays) {
  Sweep sweep = confirmed(1);
  sweep.manifest.axes[2].fresh = 0;
  std::erase_if(sweep.manifest.trials, [](const auto& trial) { return trial.at[2] >= 2; });
  expect_words(sweep.text(Format::terminal, Form::wide), "chosen on valid of the same seeds that are reported on test: the means are biased upward");
}

TEST(Confirm, BeforeTheFreshTrialsThereIsNoNumber) {
  Sweep sweep = confirmed(1);
  std::erase_if(sweep.manifest.trials, [](const auto& trial) { return trial.at[2] >= 2; });  // not named yet
  const auto line = read_csv(sweep.text(Format::csv, Form::longer)).at(0);
  EXPECT_EQ(line.at("mean"), "NA");
  EXPECT_EQ(line.at("optimizer.lr"), "0.2");
  EXPECT_EQ(line.at("n"), "0");
  EXPECT_EQ(line.at("missing"), "3");
  EXPECT_EQ(line.at("flags"), "lr_edge;incomplete");
  EXPECT_EQ(sweep.table().missing, 3);
  EXPECT_FALSE(sweep.table().complete());
  expect_words(sweep.text(Format::terminal, Form::wide), "3 fresh trials of the confirmation await the selection");
}

TEST(Confirm, AnUnfinishedSelectionExpectsThemToo) {
  Sweep sweep = confirmed(1);
  std::erase_if(sweep.manifest.trials, [](const auto& trial) { return trial.at[2] >= 2; });
  sweep.folder.records.clear();
  sweep.record({0, 0, 0}, 0.5, 0.9);
  EXPECT_EQ(sweep.table().expected, 7);
  EXPECT_EQ(sweep.table().missing, 6);
}

TEST(Confirm, WhereNothingCanBeChosenThereIsNothingToConfirm) {
  Sweep sweep = confirmed(1);
  std::erase_if(sweep.manifest.trials, [](const auto& trial) { return trial.at[2] >= 2; });
  sweep.folder.records.clear();
  for (const std::int64_t lr : {0, 1}) {
    sweep.record({0, lr, 0}, 0.5, 0.9);
    sweep.diverged({0, lr, 1});
  }
  const Table table = sweep.table();
  EXPECT_EQ(table.expected, 4);
  EXPECT_TRUE(table.complete());  // a diverged trial is a result
  EXPECT_TRUE(table.chosen.empty());
  EXPECT_EQ(read_csv(sweep.text(Format::csv, Form::longer)).at(0).at("flags"), "none_complete");
}

TEST(Confirm, AChoiceThatChangedNeedsItsOwnTrials) {
  Sweep sweep = confirmed(0);  // the fresh trials are those of 0.1, but now 0.2 is better
  for (std::int64_t i = 0; i < 3; ++i) sweep.record({0, 0, 2 + i}, 0.5, 0.5);
  const Table table = sweep.table();
  EXPECT_EQ(table.expected, 7);
  EXPECT_EQ(table.missing, 3);
  EXPECT_EQ(table.done, 4);
  EXPECT_EQ(read_csv(sweep.text(Format::csv, Form::longer)).at(0).at("mean"), "NA");
}

TEST(Confirm, ADivergedFreshTrialTakesTheMean) {
  Sweep sweep = confirmed(1);
  sweep.record({0, 1, 2}, 0.8, 0.6);
  sweep.record({0, 1, 3}, 0.8, 0.7);
  sweep.diverged({0, 1, 4});
  const auto line = read_csv(sweep.text(Format::csv, Form::longer)).at(0);
  EXPECT_EQ(line.at("mean"), "NA");
  EXPECT_EQ(line.at("n"), "2");
  EXPECT_EQ(line.at("diverged"), "1");
  expect_words(sweep.text(Format::terminal, Form::wide), "diverged  A / lr 0.2 / seed 102");
}

TEST(Confirm, EverySettingOfAnAverageIsConfirmedByItself) {
  results::ManifestAxis seeds = values("seed", "replicate", "seed", {0, 100, 101});
  seeds.fresh = 2;
  Sweep sweep({values("lr", "select", "optimizer.lr", {0.1, 0.2}), values("noise", "average", "task.noise", {0, 1}), seeds});
  for (const std::int64_t lr : {0, 1}) {
    sweep.record({lr, 0, 0}, lr == 0 ? 0.9 : 0.1, 0.0);
    sweep.record({lr, 1, 0}, lr == 1 ? 0.9 : 0.1, 0.0);
  }
  std::erase_if(sweep.manifest.trials, [](const auto& t) { return t.at[2] >= 1 && t.at[0] != t.at[1]; });
  for (const std::int64_t seed : {1, 2}) {
    sweep.record({0, 0, seed}, 0.0, 0.2 * static_cast<double>(seed));
    sweep.record({1, 1, seed}, 0.0, 0.4);
  }
  const Table table = sweep.table();
  EXPECT_EQ(table.chosen, (std::vector<std::vector<std::int64_t>>{{0, 0, -1}, {1, 1, -1}}));
  const auto line = read_csv(sweep.text(Format::csv, Form::longer)).at(0);
  EXPECT_EQ(line.at("optimizer.lr"), "0.1;0.2");
  EXPECT_EQ(line.at("min"), "0.3000");  // (0.2 + 0.4) / 2
  EXPECT_EQ(line.at("max"), "0.4000");
  EXPECT_EQ(line.at("trials"), "8");
}

}  // namespace
}  // namespace phasor::analysis
