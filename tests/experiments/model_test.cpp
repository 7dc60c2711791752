// What an experiment can say of a model beside its mixer: patterns, norms, MLPs, embeddings, starts; and the optimisers.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>

#include "core/base/blame.h"
#include "core/graph/accumulate.h"
#include "core/ops/gather_rows/gather_rows.h"
#include "core/optim/sgd.h"
#include "experiments/cost.h"
#include "experiments/trainer.h"
#include "experiments/trial.h"
#include "tests/experiments/fixture.h"

namespace phasor {
namespace {

/// An experiment with its model, built but not trained.
class Built {
 public:
  explicit Built(const std::string& patch, std::int64_t streams = 1) : spec_(shipped_plugins()), data_(12) {
    read_spec(spec_, small_experiment(patch));
    data_.streams = streams;
    data_.classes = {4, 5};
    data_.max_time = 20;
    model_ = std::make_unique<Model>(spec_.model, data_, spec_.mixer(), store_);
    store_.allocate(Dtype::f64);
    store_.initialise(3);
  }
  ParameterStore& store() { return store_; }
  std::vector<double> values(const std::string& name) const {
    const ParameterEntry* entry = store_.find(name);
    if (entry == nullptr) return {};
    const Tensor value = store_.value(*entry);
    return {value.as<double>(), value.as<double>() + value.size()};
  }
  double deviation(const std::string& name) const {
    double square = 0.0;
    const std::vector<double> all = values(name);
    for (const double x : all) square += x * x;
    return std::sqrt(square / static_cast<double>(all.size()));
  }
  struct Pass {
    std::vector<double> logits, gradients;
  };
  /// At some positions of two rows, and the gradients of the sum of all logits weighted by their place. `alone`: by
  /// Model::logits; otherwise of every position, of which these are taken.
  Pass at(const std::vector<std::int32_t>& ids, const std::vector<std::int32_t>& positions, bool alone) {
    const Tensor gradients(arena_, Dtype::f64, {store_.flat_size()});
    zero(gradients);
    Tape tape(arena_, {Dtype::f64, nullptr}, true, gradients);
    const auto integers = [&](Shape shape, const std::vector<std::int32_t>& values) {
      const Tensor out = tape.empty(shape, Dtype::i32);
      std::copy(values.begin(), values.end(), out.as<std::int32_t>());
      return out;
    };
    const Tensor tokens = integers({2, static_cast<std::int64_t>(ids.size()) / 2}, ids);
    const Tensor index = integers({static_cast<std::int64_t>(positions.size())}, positions);
    const Tensor out = alone ? model_->logits(tape, std::span(&tokens, 1), {0, true}, index)
                             : ops::gather_rows(tape, model_->head(tape, model_->hidden(tape, tokens, {0, true})), index);
    Pass pass;
    const Tensor seed = tape.empty(out.shape());
    for (std::int64_t r = 0; r < out.rows(); ++r)
      for (std::int64_t c = 0; c < out.width(); ++c) {
        const bool there = positions[static_cast<std::size_t>(r)] >= 0;
        pass.logits.push_back(there ? out.as<double>()[r * out.row_stride() + c] : 0.0);
        seed.as<double>()[r * seed.row_stride() + c] = there ? 0.1 + 0.3 * static_cast<double>(r) - 0.2 * static_cast<double>(c) : 0.0;
      }
    tape.backward(std::array{std::pair{out, seed}});
    pass.gradients = {gradients.as<double>(), gradients.as<double>() + gradients.size()};
    return pass;
  }
  /// Logits of the last position.
  std::vector<double> logits(const std::vector<std::vector<std::int32_t>>& ids, const SequenceContext& context = {}) {
    Tape tape(arena_, {Dtype::f64, nullptr}, false);
    std::vector<Tensor> streams;
    for (const auto& stream : ids) {
      streams.push_back(tape.empty({1, static_cast<std::int64_t>(stream.size())}, Dtype::i32));
      std::copy(stream.begin(), stream.end(), streams.back().as<std::int32_t>());
    }
    const Tensor hidden = model_->hidden(tape, streams, context);
    const Tensor out = model_->head(tape, hidden.reshape({hidden.size(1), hidden.size(2)}));
    EXPECT_EQ(out.size(-1), 5);
    return {out.as<double>() + out.size() - 5, out.as<double>() + out.size()};
  }

 private:
  ExperimentSpec spec_;
  DataShape data_;
  ParameterStore store_;
  std::unique_ptr<Model> model_;
  Arena arena_;
};

/// Keeps the shapes of what every layer shows.
struct Shapes final : Inspector {
  void enter(std::int64_t layer) override { text += "| " + std::to_string(layer) + " "; }
  void show(std::string_view name, const Tensor& value) override { text += std::string(name) + value.shape().text() + " "; }
  std::string text;
};

TEST(Inspection, LayersShowPhasesAndGatesAndComputeTheSame) {
  const std::vector<std::vector<std::int32_t>> ids{{1, 5, 3, 2}};
  const std::string gated = R"({"model": {"encoding": {"gate": {"kind": "standard"}}}})";
  Built built(gated), alone(gated);
  Shapes seen;
  SequenceContext context;
  context.inspector = &seen;
  EXPECT_EQ(built.logits(ids, context), alone.logits(ids));
  const std::string layer = "phase_gate[1, 4, 2] phase[1, 4, 2, 4] temperature[4] log_decay[1, 4, 2, 8] ";
  EXPECT_EQ(seen.text, "| -1 | 0 " + layer + "| 1 " + layer);
}

TEST(Inspection, WhatIsNotThereIsNotShown) {
  Built built(R"({"model": {"layers": 1, "backbone": {"name": "transformer", "heads": 2}, "encoding": {"name": "nope"}}})");
  Shapes seen;
  SequenceContext context;
  context.inspector = &seen;
  built.logits({{1, 5, 3, 2}}, context);
  EXPECT_EQ(seen.text, "| -1 | 0 ");
}

std::string refusal(const std::string& patch) {
  try {
    ExperimentSpec spec(shipped_plugins());
    read_spec(spec, small_experiment(patch));
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(ModelOptions, PatternsNameTheMixerOfEachLayer) {
  const Built built(R"({"model": {"layers": 5, "pattern": "ba", "other_backbone": {"name": "base_conv"}, "other_encoding": {"name": "nope"}}})");
  for (const int layer : {0, 2, 4}) EXPECT_FALSE(built.values("layers." + std::to_string(layer) + ".attn.conv.weight").empty());
  for (const int layer : {1, 3}) EXPECT_FALSE(built.values("layers." + std::to_string(layer) + ".attn.q_proj.weight").empty());
  EXPECT_NE(refusal(R"({"model": {"pattern": "ab"}})").find("model.pattern"), std::string::npos);
  EXPECT_NE(refusal(R"({"model": {"pattern": "x"}})").find("model.pattern"), std::string::npos);
  EXPECT_NE(refusal(R"({"model": {"other_backbone": {"name": "base_conv"}, "other_encoding": {"name": "nope"}}})").find("not be used"), std::string::npos);
  EXPECT_NE(refusal(R"({"model": {"pattern": "ab", "other_backbone": {"name": "base_conv"}}})").find("model.other_encoding"), std::string::npos);
  EXPECT_NE(refusal(R"({"model": {"pattern": "ab", "other_backbone": {"name": "base_conv"}, "other_encoding": {"name": "rope"}}})").find("model.other_encoding"),
            std::string::npos);
}

TEST(ModelOptions, MlpKinds) {
  const Built gelu(R"({"model": {"mlp": {"kind": "gelu", "width": null, "ratio": 3}}})");
  EXPECT_EQ(gelu.values("layers.0.mlp.fc1.weight").size(), 3u * 16 * 16);
  EXPECT_EQ(gelu.values("layers.1.mlp.fc2.bias").size(), 16u);
  const Built identity(R"({"model": {"mlp": {"kind": "identity"}}})");
  EXPECT_FALSE(identity.values("layers.0.mlp_norm.weight").empty());
  const Built none(R"({"model": {"mlp": {"kind": "none"}}})");
  EXPECT_TRUE(none.values("layers.0.mlp_norm.weight").empty());
  // identity: x + norm(x); with a norm weight of zero that is x, as with none.
  Built silent(R"({"model": {"mlp": {"kind": "identity"}}})"), plain(R"({"model": {"mlp": {"kind": "none"}}})");
  EXPECT_NE(silent.logits({{1, 2, 3}}), plain.logits({{1, 2, 3}}));
  for (const char* name : {"layers.0.mlp_norm.weight", "layers.1.mlp_norm.weight"}) zero(silent.store().value(*silent.store().find(name)));
  EXPECT_EQ(silent.logits({{1, 2, 3}}), plain.logits({{1, 2, 3}}));
}

TEST(Model, WhatFollowsTheLastMixerRunsWhereItIsAskedFor) {
  // Row 1's last position, one position twice, nothing, row 0's first.
  const std::vector<std::int32_t> ids = {1, 5, 3, 2, 0, 7, 4, 4, 6, 11}, positions = {9, 3, -1, 3, 0};
  for (const char* patch :
       {"{}", R"({"model": {"layers": 1, "mlp": {"kind": "gelu", "width": null}}})", R"({"model": {"mlp": {"kind": "identity"}}})",
        R"({"model": {"mlp": {"kind": "none"}, "tie_head": true}})", R"({"model": {"norm": "layer", "embedding": {"kind": "sphere"}}})"}) {
    Built built(patch);
    const Built::Pass all = built.at(ids, positions, false), alone = built.at(ids, positions, true);
    double largest = 0.0;
    for (std::size_t i = 0; i < all.logits.size(); ++i) EXPECT_NEAR(alone.logits[i], all.logits[i], 1e-12) << patch << " logit " << i;
    for (std::size_t i = 0; i < all.gradients.size(); ++i) {
      EXPECT_NEAR(alone.gradients[i], all.gradients[i], 1e-12) << patch << " gradient " << i;
      largest = std::max(largest, std::abs(all.gradients[i]));
    }
    EXPECT_GT(largest, 0.1) << patch;
  }
}

TEST(ModelOptions, ScaledStart) {
  const Built plain("{}"), scaled(R"({"model": {"residual_init": "scaled"}})");
  for (const char* name : {"layers.0.attn.o_proj.weight", "layers.1.mlp.down_proj.weight"})
    EXPECT_NEAR(scaled.deviation(name), plain.deviation(name) / 2.0, 1e-12) << name;  // two layers: 1 / sqrt(4)
  EXPECT_EQ(scaled.values("layers.0.attn.q_proj.weight"), plain.values("layers.0.attn.q_proj.weight"));
}

TEST(ModelOptions, LayerNorm) {
  const Built built(R"({"model": {"norm": "layer"}})");
  for (const char* name : {"layers.0.attn_norm.bias", "layers.1.mlp_norm.bias", "norm.bias"}) EXPECT_EQ(built.values(name).size(), 16u) << name;
}

TEST(ModelOptions, SphereIsFrozenAndScoredThroughAMatrix) {
  Built built(R"({"model": {"embedding": {"kind": "sphere"}}})", 2);
  const std::vector<double> table = built.values("embeddings.weight");
  ASSERT_EQ(table.size(), 12u * 16);
  for (std::size_t row = 0; row < 12; ++row) {
    double square = 0.0;
    for (std::size_t i = 0; i < 16; ++i) square += table[row * 16 + i] * table[row * 16 + i];
    EXPECT_NEAR(square, 1.0, 1e-12);
  }
  EXPECT_TRUE(built.store().find("embeddings.weight")->frozen);
  EXPECT_EQ(built.values("in_proj.1.weight").size(), 16u * 16);
  EXPECT_TRUE(built.values("lm_head.weight").empty());
  // The second stream counts, and nothing (-1) is not token 0.
  EXPECT_NE(built.logits({{1, 2}, {3, 4}}), built.logits({{1, 2}, {3, 5}}));
  EXPECT_NE(built.logits({{1, 2}, {3, -1}}), built.logits({{1, 2}, {3, 0}}));
  EXPECT_NE(refusal(R"({"model": {"tie_head": true, "embedding": {"kind": "sphere"}}})").find("model.tie_head"), std::string::npos);
}

TEST(ModelOptions, TiedHeadScoresTheClassesOnly) {
  Built built(R"({"model": {"tie_head": true, "layers": 1}})");
  EXPECT_TRUE(built.values("lm_head.weight").empty());
  // Classes are the tokens 4 to 8: row 4 of the table, which is no input here, moves the first logit alone.
  const std::vector<double> before = built.logits({{1, 2, 3}});
  built.store().value(*built.store().find("embeddings.weight")).as<double>()[4 * 16] += 1.0;
  const std::vector<double> after = built.logits({{1, 2, 3}});
  EXPECT_NE(after[0], before[0]);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_EQ(after[i], before[i]) << i;
}

TEST(ModelOptions, LearnedPositionsEnterOnce) {
  const char* learned = R"({"model": {"encoding": {"name": "learned_absolute"}}})";
  Built built(learned);
  EXPECT_EQ(built.values("encoding.weight").size(), 20u * 16);  // the longest row
  EXPECT_TRUE(built.values("layers.0.encoding.weight").empty());
  const std::vector<double> first = built.logits({{1}});
  EXPECT_NE(built.logits({{1}}, {3, false, {}, {}}), first);
  try {
    built.logits({{1}}, {20, false, {}, {}});
    FAIL() << "a position beyond the table was looked up";
  } catch (const PluginFailure& failure) {
    EXPECT_NE(std::string(failure.what()).find("position 20 of a table of 20"), std::string::npos) << failure.what();
  }
  EXPECT_NE(refusal(R"({"model": {"encoding": {"name": "learned_absolute", "length": 12}}})").find("expected at least 16"), std::string::npos);
}

TEST(ModelOptions, DropoutIsAFunctionOfTheStepAndTheRow) {
  Built built(R"({"model": {"embedding": {"dropout": 0.5}}})");
  const auto with = [&](std::int64_t step, std::int64_t row) { return built.logits({{1, 2, 3}}, {0, true, {}, DropoutKey{7, step, row}}); };
  const std::vector<double> none = built.logits({{1, 2, 3}});
  EXPECT_EQ(with(4, 2), with(4, 2));
  EXPECT_NE(with(4, 2), with(5, 2));
  EXPECT_NE(with(4, 2), with(4, 3));
  EXPECT_NE(with(4, 2), none);
  EXPECT_EQ(built.logits({{1, 2, 3}}), none) << "evaluation drops nothing";
}

TEST(Trial, DropoutDoesNotDependOnThreads) {
  const auto bits = [](const std::string& run) {
    ExperimentSpec spec(shipped_plugins());
    read_spec(spec, small_experiment(R"({"model": {"embedding": {"dropout": 0.3}}, "run": )" + run + "}"));
    return run_trial(spec, {}).bits;
  };
  EXPECT_EQ(bits(R"({"threads": 1})"), bits(R"({"threads": 3})"));
}

/// Of one kernel; nothing when it did not run.
Profile::Entry entry_of(const Profile& profile, std::string_view name) {
  for (const Profile::Entry& entry : profile.entries())
    if (name == entry.name) return entry;
  return {"", 0.0, 0.0, 0, 0};
}

TEST(Cost, AStepIsCountedAsItRuns) {
  // Lanes of 2, 3, 2 and 3 rows: in micro-batches of two, some have one row.
  for (const char* patch : {"{}", R"({"train": {"micro_batch": 1}, "task": {"count_bos": true}})", R"({"train": {"micro_batch": 2}})",
                            R"({"model": {"mlp": {"kind": "gelu"}, "embedding": {"kind": "sphere", "dropout": 0.1}}})",
                            R"({"model": {"dim": 96}, "optimizer": {"name": "sgd", "momentum": 0.9}})",
                            R"({"optimizer": {"name": "sgd"}, "train": {"lanes": 1, "precision": "f64"}})"}) {
    ExperimentSpec spec(shipped_plugins());
    read_spec(spec, small_experiment(patch));
    const Cost cost = count_cost(spec);
    Trainer trainer(spec);
    trainer.step();  // the first draws two batches
    trainer.profile(true);
    trainer.step();
    const Profile profile = trainer.collected();
    EXPECT_EQ(cost.step.entries().size(), profile.entries().size()) << patch;
    for (const Profile::Entry& ran : profile.entries()) {
      const Profile::Entry counted = entry_of(cost.step, ran.name);
      EXPECT_EQ(counted.calls, ran.calls) << ran.name << " " << patch;
      EXPECT_EQ(counted.bytes, ran.bytes) << ran.name << " " << patch;
      EXPECT_EQ(counted.flops, ran.flops) << ran.name << " " << patch;
    }
    EXPECT_EQ(cost.step_flops, profile.total().flops);
    EXPECT_EQ(cost.step_tokens, 10 * 11);
    const std::int64_t element = spec.train.precision == "f64" ? 8 : 4;
    EXPECT_EQ(cost.parameter_bytes, element * trainer.parameters().flat_size());
    EXPECT_GT(cost.step.total().bytes, cost.least_step_bytes);
    EXPECT_GT(estimate_time(spec, cost).seconds, 0.0);
  }
}

TEST(Cost, MemoryGrowsWithTheMicroBatch) {
  const auto bytes = [](const std::string& rows) {
    ExperimentSpec spec(shipped_plugins());
    read_spec(spec, small_experiment(R"({"train": {"batch": 64, "lanes": 2, "micro_batch": )" + rows + "}}"));
    return count_cost(spec).activation_bytes;
  };
  EXPECT_GT(bytes("32"), 6 * bytes("4"));
}

/// Two parameters, one of which does not decay, against the formulas written down.
void check_sgd(double momentum, bool nesterov, std::optional<double> clip) {
  ParameterStore store;
  store.declare("weight", {2}, Init::zeros(), false, true);
  store.declare("bias", {1}, Init::zeros(), false, false);
  store.allocate(Dtype::f64);
  auto* p = store.flat().as<double>();
  std::array<double, 3> want = {0.5, -1.0, 2.0}, moment = {0.0, 0.0, 0.0};
  std::copy(want.begin(), want.end(), p);
  SgdOptions options;
  options.momentum = momentum;
  options.nesterov = nesterov;
  options.decay.weight_decay = 0.1;
  options.decay.clip = clip;
  Sgd sgd(options, store);
  Arena arena;
  const Tensor gradient(arena, Dtype::f64, {3});
  for (int t = 0; t < 5; ++t) {
    const std::array<double, 3> g = {0.3 * t - 0.4, 1.0, -0.2 * t};
    std::copy(g.begin(), g.end(), gradient.as<double>());
    const double lr = 0.1 / (t + 1.0);
    const StepReport report = sgd.step(gradient, lr);
    const double norm = std::sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]);
    const double factor = clip ? std::min(1.0, *clip / (norm + 1e-6)) : 1.0;
    EXPECT_NEAR(report.grad_norm, norm, 1e-12);
    for (std::size_t i = 0; i < 3; ++i) {
      const double full = factor * g[i] + (i < 2 ? 0.1 * want[i] : 0.0);
      moment[i] = momentum * moment[i] + full;
      want[i] -= lr * (nesterov ? full + momentum * moment[i] : moment[i]);
      EXPECT_NEAR(p[i], want[i], 1e-12) << "step " << t << ", parameter " << i;
    }
  }
}

TEST(Sgd, FollowsItsFormulas) {
  check_sgd(0.0, false, std::nullopt);
  check_sgd(0.9, false, std::nullopt);
  check_sgd(0.9, true, 0.5);
}

}  // namespace
}  // namespace phasor
