#include <gtest/gtest.h>

#include "tests/analysis/sweep.h"

namespace phasor::analysis {
namespace {

using Lines = std::vector<std::string>;

Sweep two_seeds() {
  Sweep sweep({values("seed", "replicate", "seed", {0, 1})});
  for (std::int64_t s = 0; s < 2; ++s) {
    auto& record = sweep.record({s}, 0.5, 0.5);
    record.spec.make_path("task.name") = std::string("copying");
    record.evals.push_back({100, "test", "sequence_accuracy", 4, 0.5, 1000});
    record.summary.insert(record.summary.end(), {{"shared_rows.test.4", 0.0}, {"shared_by_chance.test.4", 0.0}});
  }
  return sweep;
}

void set(results::TrialRecord& record, const std::string& name, double value) {
  for (auto& [known, old] : record.summary)
    if (known == name) old = value;
}

TEST(Overlap, NothingSharedIsSaid) { EXPECT_EQ(two_seeds().table().data, Lines{"no evaluation row was trained on"}); }

TEST(Overlap, TheMostOfAnyTrialBesideChance) {
  Sweep sweep = two_seeds();
  set(sweep.folder.records[0], "shared_rows.test.4", 290.0);
  set(sweep.folder.records[1], "shared_rows.test.4", 297.0);
  set(sweep.folder.records[1], "shared_by_chance.test.4", 300.5);
  EXPECT_EQ(sweep.table().data, Lines{"copying test 4: up to 297 of 1,000 rows were trained on (300.5000 by chance)"});
}

TEST(Overlap, MoreThanChanceIsALeak) {
  Sweep sweep = two_seeds();
  set(sweep.folder.records[1], "shared_rows.test.4", 1000.0);
  EXPECT_EQ(sweep.table().data, Lines{"LEAK: copying test 4: up to 1,000 of 1,000 rows were trained on (0.0000 by chance)"});
  EXPECT_NE(sweep.text(Format::terminal, Form::wide).find("LEAK: copying test 4"), std::string::npos);
}

TEST(Overlap, UnmeasuredTrialsAreCounted) {
  Sweep sweep = two_seeds();
  sweep.folder.records[0].summary.clear();
  EXPECT_EQ(sweep.table().data, (Lines{"no evaluation row was trained on", "rows shared with training were not measured in 1 trial"}));
}

TEST(Overlap, PartsOfRowsAreCountedAsSuch) {
  Sweep sweep = two_seeds();
  set(sweep.folder.records[1], "shared_rows.test.4", 12.0);
  sweep.folder.records[1].summary.emplace_back("units.test.4", 3400.0);
  EXPECT_EQ(sweep.table().data, Lines{"LEAK: copying test 4: up to 12 of 3,400 parts of rows were trained on (0.0000 by chance)"});
}

}  // namespace
}  // namespace phasor::analysis
