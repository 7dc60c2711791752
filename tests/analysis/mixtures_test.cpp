#include "analysis/frame/mixtures.h"

#include <gtest/gtest.h>

#include "tests/analysis/sweep.h"

namespace phasor::analysis {
namespace {

Sweep two_columns() {
  Sweep sweep({points("task", "column", {"S2", "A3"}), values("seed", "replicate", "seed", {0, 1})});
  for (std::int64_t task = 0; task < 2; ++task) {
    for (std::int64_t s = 0; s < 2; ++s) {
      auto& record = sweep.record({task, s}, 0.5, 0.5);
      record.provenance.emplace_back("data.test", task == 0 ? "c41e77" : "f00d");
      record.provenance.emplace_back("data.train", "seed " + std::to_string(s));
      record.provenance.emplace_back("numerics.gla", "3");
      if (task == 1) record.provenance.emplace_back("numerics.rope", "1");
    }
  }
  return sweep;
}

void set(results::TrialRecord& record, const std::string& name, const std::string& value) {
  for (auto& [known, old] : record.provenance) {
    if (known == name) old = value;
  }
}

TEST(Mixtures, OneOfEachPassesAndIsNamed) {
  EXPECT_EQ(two_columns().table().build, (std::vector<std::string>{"1 commit, 1 processor, 1 device"}));
}

TEST(Mixtures, DifferentBuildsProcessorsDevicesAndRevisionsAreRefused) {
  const std::pair<const char*, const char*> changes[] = {
      {"commit", "def"}, {"dirty", "1"}, {"processor", "Q"}, {"device", "cuda"}, {"numerics.gla", "4"}};
  for (const auto& [name, value] : changes) {
    Sweep sweep = two_columns();
    set(sweep.folder.records[3], name, value);
    const std::string message = refusal([&] { sweep.table(); });
    EXPECT_NE(message.find("table: trials of different "), std::string::npos) << name;
    EXPECT_NE(message.find("--allow-mixed"), std::string::npos) << message;
    EXPECT_NE(message.find("A3 / seed 1"), std::string::npos) << message;
    const Table mixed = make_table(sweep.manifest, sweep.folder, {.allow_mixed = true});
    EXPECT_EQ(mixed.build.size(), 2u);
    EXPECT_NE(render(mixed, Format::terminal, Form::wide).find("mixed "), std::string::npos);
  }
}

TEST(Mixtures, ATrialThatGivesNoNumberMayDiffer) {
  Sweep sweep = two_columns();
  sweep.folder.records[3].status = results::Status::error;
  set(sweep.folder.records[3], "commit", "def");
  EXPECT_EQ(refusal([&] { sweep.table(); }), "");
}

TEST(Mixtures, EvaluationDataMustAgreeWithinAColumnWhateverIsAllowed) {
  Sweep sweep = two_columns();
  set(sweep.folder.records[1], "data.test", "other");
  const std::string message = refusal([&] { make_table(sweep.manifest, sweep.folder, {.allow_mixed = true}); });
  EXPECT_EQ(message, "table: trials of different evaluation data (data.test) in one column: S2 / seed 0 has \"c41e77\", "
                     "S2 / seed 1 has \"other\"; rerun the trials so that all are judged on the same data, "
                     "or make the axis that changes it a column");
}

}  // namespace
}  // namespace phasor::analysis
