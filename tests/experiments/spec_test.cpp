#include <gtest/gtest.h>

#include "experiments/spec.h"
#include "tests/experiments/fixture.h"

namespace phasor {
namespace {

std::string id_of(const Json& value) {
  ExperimentSpec spec(shipped_plugins());
  read_spec(spec, value);
  return make_trial(spec).id;
}

std::vector<Problem> problems_of(const std::string& patch) {
  ExperimentSpec spec(shipped_plugins());
  Document document = Document::parse(small_experiment(patch).pretty(), "spec");
  spec.read(document);
  return document.problems();
}

TEST(ExperimentSpec, IdentityIsTheContentWithoutRunAndNote) {
  const std::string id = id_of(small_experiment());
  EXPECT_EQ(id_of(small_experiment(R"({"note": "x", "run": {"threads": 3, "log_every": 1}})")), id);
  EXPECT_EQ(id_of(small_experiment(R"({"optimizer": {"lr": 1e-2}})")), id);       // the same number
  EXPECT_EQ(id_of(small_experiment(R"({"model": {"norm_eps": 1e-6}})")), id);     // the default, written out
  EXPECT_NE(id_of(small_experiment(R"({"optimizer": {"lr": 0.010000000000000002}})")), id);  // its neighbour
  EXPECT_NE(id_of(small_experiment(R"({"train": {"lanes": 2}})")), id);
  EXPECT_NE(id_of(small_experiment(R"({"seed": 1})")), id);
}

// Trials of before the option keep their names.
TEST(ExperimentSpec, StorageIsPartOfTheIdentityWhereItRounds) {
  ExperimentSpec spec(shipped_plugins());
  read_spec(spec, small_experiment());
  const Trial trial = make_trial(spec);
  EXPECT_EQ(trial.spec.at_path("train.storage")->as_string(), "as_computed");
  EXPECT_EQ(identity(trial.spec, "cpu").at_path("train.storage"), nullptr);
  EXPECT_EQ(trial.spec.at_path("train.attention")->as_string(), "own");
  EXPECT_EQ(identity(trial.spec, "cpu").at_path("train.attention"), nullptr);
  Json older = trial.spec;
  older["train"].erase("storage");
  EXPECT_EQ(identity(older, "cpu"), identity(trial.spec, "cpu"));
  EXPECT_NE(id_of(small_experiment(R"({"train": {"storage": "bf16"}})")), trial.id);
}

TEST(ExperimentSpec, ResolvesEveryDefault) {
  ExperimentSpec spec(shipped_plugins());
  read_spec(spec, small_experiment());
  const Json resolved = make_trial(spec).spec;
  for (const char* path : {"train.lanes", "train.micro_batch", "model.encoding.temperature.theta", "task.eval_seed",
                           "model.backbone.gate_rank", "optimizer.schedule.name", "run.threads"}) {
    const Json* value = resolved.at_path(path);
    ASSERT_NE(value, nullptr) << path;
    EXPECT_FALSE(value->is_null()) << path;
  }
  ExperimentSpec again(shipped_plugins());
  read_spec(again, resolved);
  EXPECT_EQ(make_trial(again).id, make_trial(spec).id);
}

TEST(ExperimentSpec, RefusesPairsThatDoNotFit) {
  const auto expect = [](const std::string& patch, const std::string& path, const std::string& text) {
    const auto problems = problems_of(patch);
    ASSERT_EQ(problems.size(), 1u) << patch;
    EXPECT_EQ(problems[0].path, path) << problems[0].message;
    EXPECT_NE(problems[0].message.find(text), std::string::npos) << problems[0].message;
  };
  expect(R"({"model": {"backbone": {"heads": 4, "kv_heads": 2}}})", "model.encoding", "as many key heads");
  expect(R"({"model": {"backbone": {"heads": 16}}})", "model.encoding", "even width");
  expect(R"({"model": {"backbone": {"heads": 3}}})", "model.backbone", "equal heads");
  expect(R"({"train": {"lanes": 11}})", "train.lanes", "at most 10");
  expect(R"({"task": {"group": "Q8"}})", "task", "Q8");
}

TEST(ExperimentSpec, SizesThatNoMachineHoldsAreRefusedAtOnce) {
  for (const char* patch : {R"({"model": {"layers": 100000000}})", R"({"model": {"dim": 100000000}})"}) {
    const auto problems = problems_of(patch);
    ASSERT_EQ(problems.size(), 1u) << patch;
    EXPECT_NE(problems[0].message.find("expected an integer 1 to"), std::string::npos) << problems[0].message;
  }
}

}  // namespace
}  // namespace phasor
