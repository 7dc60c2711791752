// Tasks in training: free-running decoding, packed rows, several streams, several slices.

#include <gtest/gtest.h>

#include <cmath>

#include "experiments/trial.h"
#include "tests/experiments/fixture.h"

namespace phasor {
namespace {

results::TrialRecord run(const std::string& spec_text, const std::string& patch = "{}") {
  Document document = Document::parse(spec_text, "spec");
  document.require_none();
  Document over = Document::parse(patch, "patch");
  over.require_none();
  merge(document.value(), over.value());
  ExperimentSpec spec(shipped_plugins());
  read_spec(spec, document.value());
  return run_trial(spec, {});
}

double value_of(const results::TrialRecord& record, const std::string& metric, std::int64_t slice) {
  for (const results::EvalPoint& point : record.evals)
    if (point.split == "test" && point.metric == metric && point.slice == slice) return point.value;
  return -1.0;
}

const char* const copying = R"({
  "task": {"name": "copying", "letters": 5, "train": {"length": 24, "shortest": 2, "longest": 5},
           "valid": {"rows": 20, "lengths": [3]}, "test": {"rows": 200, "lengths": [2, 3, 7]}},
  "model": {"dim": 24, "layers": 2, "init_std": 0.1, "mlp": {"width": 48},
            "backbone": {"name": "gla", "heads": 2, "expand_k": 1.0, "short_conv": 4},
            "encoding": {"name": "selective_rope", "projection": {"rank": 4}, "bias": true}},
  "optimizer": {"name": "adamw", "lr": 0.01, "clip": 1.0},
  "train": {"steps": 120, "batch": 16}
})";

TEST(Decoding, AWholeStringIsRightFreelyWhenItIsRightWithTheTruthGiven) {
  // Until the first mistake both read the same tokens, so strings are right together; letters after a mistake are not.
  const results::TrialRecord record = run(copying);
  ASSERT_EQ(record.status, results::Status::done) << record.message;
  for (const std::int64_t letters : {2, 3, 7}) {
    EXPECT_NEAR(value_of(record, "free_sequence_accuracy", letters), value_of(record, "sequence_accuracy", letters), 0.011) << letters;
    EXPECT_LE(value_of(record, "free_sequence_accuracy", letters), value_of(record, "free_token_accuracy", letters));
  }
  EXPECT_GT(value_of(record, "sequence_accuracy", 2), 0.1) << "something was learned, or the comparison says little";
  EXPECT_LT(value_of(record, "sequence_accuracy", 7), 1.0);
}

TEST(Decoding, DoesNotDependOnTheMicroBatch) {
  const auto free = [](const std::string& rows) {
    return value_of(run(copying, R"({"train": {"steps": 40, "precision": "f64", "lanes": 1, "micro_batch": )" + rows + "}}"), "free_token_accuracy", 3);
  };
  EXPECT_EQ(free("16"), free("3"));
}

TEST(Packing, SeparateSamplesTrainAndDiffer) {
  const results::TrialRecord together = run(copying, R"({"train": {"steps": 5}})");
  const results::TrialRecord apart = run(copying, R"({"train": {"steps": 5}, "task": {"separate": true}})");
  ASSERT_EQ(apart.status, results::Status::done) << apart.message;
  EXPECT_NE(apart.steps.front().loss, together.steps.front().loss) << "what stands before a sample matters only when it is seen";
}

const char* const recall = R"({
  "task": {"name": "mqar", "vocabulary": 64,
           "train": {"rows": [100, 60], "lengths": [16, 24], "pairs": [2, 4]},
           "valid": {"rows": [20], "lengths": [16], "pairs": [2]}, "test": {"rows": [20, 20], "lengths": [16, 32], "pairs": [2, 8]}},
  "model": {"dim": 16, "layers": 2, "pattern": "ba", "init_std": 0.1, "norm": "layer", "tie_head": true, "mlp": {"kind": "identity"},
            "embedding": {"dropout": 0.1}, "backbone": {"name": "gla", "heads": 1, "expand_k": 1.0}, "encoding": {"name": "nope"},
            "other_backbone": {"name": "base_conv"}, "other_encoding": {"name": "nope"}},
  "optimizer": {"name": "adamw", "lr": 0.01, "weight_decay": 0.1, "decay": "all"},
  "train": {"steps": 12, "batch": 20}
})";

TEST(Slices, TrainingGoesThroughAllOfThem) {
  // An epoch is 5 batches of 16 tokens and 3 of 24: 12 steps are one and a half.
  for (const char* order : {"true", "false"}) {
    const results::TrialRecord record = run(recall, R"({"task": {"curriculum": )" + std::string(order) + "}}");
    ASSERT_EQ(record.status, results::Status::done) << record.message;
    double tokens = 0.0;
    for (const auto& [name, value] : record.summary)
      if (name == "tokens") tokens = value;
    const double long_batches = (tokens / 20.0 - 12.0 * 16.0) / 8.0;
    EXPECT_EQ(long_batches, std::round(long_batches));
    EXPECT_GE(long_batches, 3.0);
    EXPECT_LE(long_batches, 6.0);
    for (const char* metric : {"loss", "token_accuracy"}) EXPECT_TRUE(std::isfinite(value_of(record, metric, 8)));
  }
}

TEST(Streams, StackedRecallTrains) {
  const results::TrialRecord record = run(recall, R"({
    "task": {"form": "stacked", "train": {"rows": [200], "lengths": [8], "pairs": [4]}, "valid": {"lengths": [4]}, "test": {"lengths": [4, 16]}},
    "model": {"layers": 1, "pattern": "a", "tie_head": false, "embedding": {"kind": "sphere", "dropout": 0.0},
              "other_backbone": {"name": "none"}, "other_encoding": {"name": "none"}}, "train": {"steps": 80}})");
  ASSERT_EQ(record.status, results::Status::done) << record.message;
  EXPECT_LT(record.steps.back().loss, record.steps.front().loss - 0.3);
}

}  // namespace
}  // namespace phasor
