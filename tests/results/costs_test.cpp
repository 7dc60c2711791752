#include "results/costs.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/base/error.h"
#include "tests/results/folder.h"

namespace phasor::results {
namespace {

Costs sample() {
  Costs costs;
  costs.facts = {{"commit", "abc"}, {"threads", "2"}};
  MeasuredCost one;
  one.key = "k1";
  one.trial = "t1";
  one.rows = 16;
  one.tokens = 32;
  one.context = 24;
  one.training_ms = Timing{4.0, 3.5, 5.0};
  one.decode_ms = Timing{0.125, 0.1, 0.25};
  one.state_bytes = 4096;
  MeasuredCost other;
  other.key = "k2";
  other.problem = "cannot be continued";
  costs.entries = {one, other};
  return costs;
}

TEST(Costs, EverythingComesBackAndWhatWasNotMeasuredStaysAbsent) {
  const TemporaryFolder folder;
  EXPECT_FALSE(find_costs(folder.path()));
  write_costs(sample(), folder.path());
  const std::optional<Costs> found = find_costs(folder.path());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->facts, sample().facts);
  EXPECT_EQ(found->fact("threads"), "2");
  EXPECT_EQ(found->fact("host"), "");
  const MeasuredCost* one = found->find("k1");
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->trial, "t1");
  EXPECT_EQ(one->rows, 16);
  EXPECT_EQ(one->tokens, 32);
  EXPECT_EQ(one->context, 24);
  EXPECT_EQ(one->training_ms->high, 5.0);
  EXPECT_EQ(one->decode_ms->median, 0.125);
  EXPECT_EQ(one->decode_ms->low, 0.1);
  EXPECT_EQ(one->state_bytes, 4096);
  EXPECT_FALSE(one->prefill_ms);
  EXPECT_FALSE(one->training_bytes);
  EXPECT_FALSE(one->decoding_bytes);
  EXPECT_EQ(found->find("k2")->problem, "cannot be continued");
  EXPECT_FALSE(found->find("k2")->decode_ms);
  EXPECT_EQ(found->find("k3"), nullptr);
}

TEST(Costs, WhatIsNotUnderstoodIsRefusedByName) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& text) -> std::string {
    std::ofstream(folder.path() + "/costs.json") << text;
    try {
      find_costs(folder.path());
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal("{").find("costs.json"), std::string::npos);
  EXPECT_NE(refusal(R"({"format": 9})").find("format: found 9, expected 1"), std::string::npos);
  EXPECT_NE(refusal(R"({"format": 1, "facts": {}, "entries": [{"key": 3}]})").find("key: found a number, expected a string"), std::string::npos);
  EXPECT_NE(refusal(R"({"format": 1, "facts": {}, "entries": [{"key": ""}]})").find("no \"trial\""), std::string::npos);
}

TEST(Costs, TheKeyKnowsShapesAndNoSeeds) {
  const Json spec = parse_json(R"({"seed": 1, "note": "n", "run": {"threads": 2}, "optimizer": {"name": "adamw", "lr": 0.1},
      "train": {"steps": 9, "batch": 4}, "task": {"length": 8, "eval_seed": 5}, "model": {"dim": 8}})", "spec");
  const auto changed = [&](const char* path, Json value) {
    Json other = spec;
    other.make_path(path) = std::move(value);
    return cost_key(other) != cost_key(spec);
  };
  EXPECT_EQ(cost_key(spec).size(), 32u);
  for (const char* path : {"seed", "note", "run.threads", "optimizer.lr", "train.steps", "train.eval_every", "task.eval_seed"})
    EXPECT_FALSE(changed(path, 77)) << path;
  for (const char* path : {"model.dim", "train.batch", "task.length"}) EXPECT_TRUE(changed(path, 77)) << path;
  EXPECT_TRUE(changed("optimizer.name", "sgd"));
}

TEST(Costs, MediansAndQuartiles) {
  EXPECT_FALSE(timing_of({}));
  const Timing timing = *timing_of({0.004, 0.001, 0.003, 0.002});
  EXPECT_DOUBLE_EQ(timing.median, 2.5);
  EXPECT_DOUBLE_EQ(timing.low, 2.0);
  EXPECT_DOUBLE_EQ(timing.high, 3.0);
}

}  // namespace
}  // namespace phasor::results
