#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "experiments/trainer.h"
#include "experiments/trial.h"
#include "tests/experiments/fixture.h"

namespace phasor {
namespace {

results::TrialRecord run(const std::string& patch) {
  ExperimentSpec spec(shipped_plugins());
  read_spec(spec, small_experiment(patch));
  return run_trial(spec, {});
}

TEST(Trial, TrainsAndEvaluates) {
  const results::TrialRecord record = run(R"({"train": {"steps": 60, "eval_every": 20}, "run": {"log_every": 1}})");
  ASSERT_EQ(record.status, results::Status::done) << record.message;
  ASSERT_EQ(record.steps.size(), 60u);
  EXPECT_LT(record.steps.back().loss, record.steps.front().loss);
  // valid at 20, 40, 60 and test at both lengths, four metrics each
  EXPECT_EQ(record.evals.size(), 3u * 4u + 2u * 4u);
  for (const auto& point : record.evals) EXPECT_TRUE(std::isfinite(point.value)) << point.metric;
  EXPECT_FALSE(record.bits.empty());
}

TEST(Trial, BitsDoNotDependOnThreadsOrLogging) {
  const std::string bits = run("{}").bits;
  for (const char* patch : {R"({"run": {"threads": 2}})", R"({"run": {"threads": 3}})", R"({"run": {"threads": 7}})",
                            R"({"run": {"log_every": 1}})", R"({"train": {"eval_every": 1}})"})
    EXPECT_EQ(run(patch).bits, bits) << patch;
  EXPECT_NE(run(R"({"seed": 1})").bits, bits);
  EXPECT_NE(run(R"({"optimizer": {"lr": 0.011}})").bits, bits);
}

TEST(Trial, StorageInBf16IsSteadyAndSeen) {
  const std::string bits = run(R"({"train": {"storage": "bf16"}})").bits;
  EXPECT_NE(bits, run("{}").bits);
  EXPECT_EQ(run(R"({"train": {"storage": "bf16"}, "run": {"threads": 3, "log_every": 1}})").bits, bits);
  ExperimentSpec spec(shipped_plugins());
  read_spec(spec, small_experiment(R"({"train": {"storage": "bf16"}})"));
  Trainer trainer(spec);
  for (int step = 0; step < 3; ++step) trainer.step();
  const Tensor& flat = trainer.parameters().flat();
  for (std::int64_t i = 0; i < flat.size(); ++i) ASSERT_EQ(std::bit_cast<std::uint32_t>(flat.as<float>()[i]) & 0xffffu, 0u) << i;
}

TEST(Trial, RoundedProductsAreSteadyAndCloseToFullOnes) {
  const auto first_loss = [](const results::TrialRecord& record) { return record.steps.front().loss; };
  const std::string logged = R"("run": {"log_every": 1, "threads": 3}})";
  const results::TrialRecord full = run("{" + logged);
  for (const auto& [name, unit] : {std::pair{"bf16", 0x1p-8}, std::pair{"tf32", 0x1p-11}}) {
    const std::string train = std::string(R"({"train": {"precision": ")") + name + "\"}";
    const results::TrialRecord rough = run(train + ", " + logged);
    ASSERT_EQ(rough.status, results::Status::done) << rough.message;
    EXPECT_EQ(run(train + "}").bits, rough.bits) << name;
    EXPECT_NE(rough.bits, full.bits) << name;
    EXPECT_NE(first_loss(rough), first_loss(full)) << name;
    EXPECT_NEAR(first_loss(rough), first_loss(full), unit) << name;
  }
}

TEST(Trial, LossAndGradientAreExactWhateverTheLanesAndMicroBatches) {
  // In f64 the first loss and gradient norm of any cut agree to rounding: means are over the batch, not of means.
  const auto first = [](const std::string& cut) {
    return run(R"({"task": {"count_bos": true}, "train": {"steps": 1, "precision": "f64", )" + cut + "}}").steps.front();
  };
  const results::StepLog whole = first(R"("lanes": 1, "micro_batch": 10)");
  for (const char* cut : {R"("lanes": 1, "micro_batch": 3)", R"("lanes": 4, "micro_batch": 1)", R"("lanes": 3, "micro_batch": 2)",
                          R"("lanes": 10, "micro_batch": 1)"}) {
    const results::StepLog part = first(cut);
    EXPECT_NEAR(part.loss, whole.loss, 1e-12) << cut;
    EXPECT_NEAR(part.grad_norm, whole.grad_norm, 1e-12 * whole.grad_norm) << cut;
  }
}

TEST(Trial, DivergenceIsAStatusWithTheStep) {
  const results::TrialRecord record = run(R"({"train": {"steps": 50}, "optimizer": {"lr": 1e30, "clip": null}})");
  EXPECT_EQ(record.status, results::Status::diverged);
  EXPECT_NE(record.message.find("step "), std::string::npos) << record.message;
  EXPECT_FALSE(std::isfinite(record.steps.back().loss) && std::isfinite(record.steps.back().grad_norm));
}

TEST(Trial, StopsWhenAsked) {
  ExperimentSpec spec(shipped_plugins());
  read_spec(spec, small_experiment());
  int asked = 0;
  const results::TrialRecord record = run_trial(spec, {.stop = [&] { return ++asked == 3; }});
  EXPECT_EQ(record.status, results::Status::error);
  EXPECT_EQ(record.message, "interrupted after step 3 of 6");
}

TEST(Trial, CountsEvaluationRowsThatAreTrainingRows) {
  const auto shared = [](const std::string& patch, const std::string& name) {
    for (const auto& [key, value] : run(patch).summary)
      if (key == name) return value;
    return -1.0;
  };
  // 200 draws of the 4 words of length 2 over S2 contain them all; at length 40 a common word is not to be expected.
  EXPECT_EQ(shared(R"({"task": {"train": {"length": 2}, "valid": {"length": 2}, "test": {"lengths": [2, 3]}}})", "shared_rows.test.2"), 30);
  EXPECT_EQ(shared(R"({"task": {"train": {"length": 2}, "valid": {"length": 2}, "test": {"lengths": [2, 3]}}})", "shared_rows.test.3"), 0);
  EXPECT_EQ(shared(R"({"task": {"train": {"length": 40}, "valid": {"length": 40}, "test": {"lengths": [40]}}})", "shared_rows.test.40"), 0);
}

TEST(Trainer, NothingIsAllocatedAfterTheFirstStep) {
  ExperimentSpec spec(shipped_plugins());
  read_spec(spec, small_experiment(R"({"train": {"steps": 20}})"));
  Trainer trainer(spec);
  trainer.step();
  const std::int64_t blocks = trainer.system_blocks();
  for (int i = 0; i < 5; ++i) trainer.step();
  EXPECT_EQ(trainer.system_blocks(), blocks);
}

TEST(Trainer, InitialisationIsKeyedByName) {
  // Adding a phase gate leaves every other parameter as it was.
  const auto initial = [](const std::string& gate) {
    ExperimentSpec spec(shipped_plugins());
    read_spec(spec, small_experiment(R"({"model": {"encoding": {"gate": {"kind": ")" + gate + R"("}}}})"));
    auto trainer = std::make_unique<Trainer>(spec);
    std::vector<std::pair<std::string, std::vector<float>>> values;
    for (const ParameterEntry& entry : trainer->parameters().entries()) {
      const Tensor value = trainer->parameters().value(entry);
      values.emplace_back(entry.name, std::vector<float>(value.as<float>(), value.as<float>() + value.size()));
    }
    return values;
  };
  const auto plain = initial("none"), gated = initial("standard");
  EXPECT_EQ(gated.size(), plain.size() + 4);  // weight and bias in two layers
  for (const auto& [name, value] : plain) {
    const auto same = std::find_if(gated.begin(), gated.end(), [&](const auto& other) { return other.first == name; });
    ASSERT_NE(same, gated.end()) << name;
    EXPECT_EQ(same->second, value) << name;
  }
}

}  // namespace
}  // namespace phasor
