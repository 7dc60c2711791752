#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/analysis/sweep.h"

namespace phasor::analysis {
namespace {

/// Two settings whose best rates differ. Seeds move the settings in opposite directions, so the deviation of the average
/// is small though each setting's is large.
Sweep two_settings() {
  Sweep sweep({points("variant", "row", {"A"}), points("setting", "average", {"easy", "hard"}),
               values("lr", "select", "optimizer.lr", {0.1, 0.2}), values("seed", "replicate", "seed", {0, 1, 2})});
  for (std::int64_t s = 0; s < 3; ++s) {
    const double up = 0.1 * static_cast<double>(s);
    sweep.record({0, 0, 0, s}, 0.9, 0.6 + up);  // easy: 0.1 wins
    sweep.record({0, 0, 1, s}, 0.5, 0.0);
    sweep.record({0, 1, 0, s}, 0.3, 0.0);       // hard: 0.2 wins
    sweep.record({0, 1, 1, s}, 0.4, 0.4 - up);
  }
  return sweep;
}

TEST(Averages, ChoosePerSettingAverageWithinASeedThenDeviate) {
  const auto lines = read_csv(two_settings().text(Format::csv, Form::longer));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].at("optimizer.lr"), "0.1;0.2");
  EXPECT_EQ(lines[0].at("mean"), "0.5000");
  EXPECT_EQ(lines[0].at("sd"), "0.0000");  // over the settings and seeds together it would be 0.2
  EXPECT_EQ(lines[0].at("n"), "3");
  EXPECT_EQ(lines[0].at("expected"), "3");
  EXPECT_EQ(lines[0].at("trials"), "12");
  EXPECT_EQ(read_csv(two_settings().text(Format::csv, Form::candidates)).size(), 4u);
}

// Settings of a task may differ in length: over all slices is over the only one.
TEST(Averages, SettingsOfDifferentLengths) {
  Sweep sweep = two_settings();
  sweep.manifest.table = parse_json(R"({
    "select": {"split": "valid", "metric": "accuracy", "slice": "all", "at": "final", "ties": ["valid.loss", "lowest"]},
    "report": [{"split": "test", "metric": "accuracy", "slices": ["all"]}],
    "primary": {"metric": "accuracy", "slice": "all"}})", "table");
  for (auto& record : sweep.folder.records) {
    if (!record.id.starts_with("t-0-1-")) continue;
    for (auto& point : record.evals) point.slice = 64;
  }
  const auto lines = read_csv(sweep.text(Format::csv, Form::longer));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].at("optimizer.lr"), "0.1;0.2");
  EXPECT_EQ(lines[0].at("mean"), "0.5000");
  EXPECT_EQ(lines[0].at("slice"), "all");
  // A split with two lengths has no number over all: nothing is averaged in silence.
  for (auto& record : sweep.folder.records) {
    const auto evals = record.evals;
    for (auto point : evals) {
      point.slice = 128;
      record.evals.push_back(point);
    }
  }
  EXPECT_THROW(sweep.text(Format::csv, Form::longer), UserError);
}

TEST(Averages, OneSettingWithoutAWholeCandidateMakesTheCellNotAvailable) {
  Sweep sweep = two_settings();
  for (auto& record : sweep.folder.records) {
    if (record.id == "t-0-1-0-1" || record.id == "t-0-1-1-2") record.status = results::Status::diverged;
  }
  const auto line = read_csv(sweep.text(Format::csv, Form::longer)).at(0);
  EXPECT_EQ(line.at("mean"), "NA");
  EXPECT_EQ(line.at("optimizer.lr"), "0.1;NA");
  EXPECT_EQ(line.at("expected"), "12");
  EXPECT_EQ(line.at("n"), "10");
  EXPECT_EQ(line.at("diverged"), "2");
}

TEST(Averages, AReplicateIsAsBadAsItsWorstSetting) {
  Sweep sweep = two_settings();
  for (auto& record : sweep.folder.records) {
    if (record.id == "t-0-0-0-1") record.evals[1].value = nan;  // chosen, but its test number is not finite
  }
  const auto line = read_csv(sweep.text(Format::csv, Form::longer)).at(0);
  EXPECT_EQ(line.at("mean"), "NA");
  EXPECT_EQ(line.at("n"), "2");
  EXPECT_EQ(line.at("diverged"), "1");
  EXPECT_EQ(line.at("expected"), "3");
}

TEST(Averages, AnExcludedSettingIsLeftOutAndFlagged) {
  Sweep sweep = two_settings();
  for (auto& trial : sweep.manifest.trials) {
    if (trial.at[1] == 1) trial.excluded = "does not fit";
  }
  const auto line = read_csv(sweep.text(Format::csv, Form::longer)).at(0);
  EXPECT_EQ(line.at("mean"), "0.7000");
  EXPECT_EQ(line.at("optimizer.lr"), "0.1");
  EXPECT_EQ(line.at("flags"), "lr_edge;settings_excluded");
}

TEST(Averages, SettingsWithinTasksFirst) {
  // Task T0 has one setting (the other is excluded), T1 has two: tasks weigh alike.
  Sweep sweep({points("task", "average", {"T0", "T1"}), points("setting", "average", {"a", "b"}),
               values("seed", "replicate", "seed", {0, 1})});
  for (std::int64_t s = 0; s < 2; ++s) {
    sweep.record({0, 0, s}, 0, 1.0);
    sweep.expected({0, 1, s}).excluded = "not a setting of T0";
    sweep.record({1, 0, s}, 0, 0.2);
    sweep.record({1, 1, s}, 0, 0.4);
  }
  EXPECT_EQ(read_csv(sweep.text(Format::csv, Form::longer)).at(0).at("mean"), "0.6500");  // not 1.6 / 3
}

}  // namespace
}  // namespace phasor::analysis
