// A task that is read at its last position: the decoder of an auto-encoder between the blocks and the head. The numbers of
// its forward and backward pass are compared in tests/golden (autoencoder).

#include <gtest/gtest.h>

#include <cmath>

#include "experiments/cost.h"
#include "experiments/trainer.h"
#include "experiments/trial.h"
#include "tests/experiments/fixture.h"

namespace phasor {
namespace {

/// Compression of rows of 6, a task of few rows and four data tokens; `patch` is merged over it.
Json compression(const std::string& patch = "{}") {
  Document base = Document::parse(R"({
    "task": {"name": "mad_compression", "vocabulary": 5, "length": 6,
             "train": {"rows": 256}, "valid": {"rows": 64}, "test": {"rows": 64}},
    "model": {"dim": 24, "layers": 1, "init_std": 0.1, "mlp": {"width": 32},
              "backbone": {"name": "gla", "heads": 2, "expand_k": 1.0}, "encoding": {"name": "rope"}},
    "optimizer": {"name": "adamw", "lr": 0.01, "clip": 1.0},
    "train": {"steps": 8, "batch": 10}
  })", "compression");
  base.require_none();
  Document over = Document::parse(patch, "patch");
  over.require_none();
  merge(base.value(), over.value());
  return base.value();
}

results::TrialRecord run(const std::string& patch) {
  ExperimentSpec spec(shipped_plugins());
  read_spec(spec, compression(patch));
  return run_trial(spec, {});
}

double value_of(const results::TrialRecord& record, const std::string& split, const std::string& metric) {
  for (const results::EvalPoint& point : record.evals)
    if (point.split == split && point.metric == metric) return point.value;
  return -1.0;
}

double summary_of(const results::TrialRecord& record, const std::string& name) {
  for (const auto& [key, value] : record.summary)
    if (key == name) return value;
  return -1.0;
}

std::string refusal(const std::string& patch) {
  try {
    ExperimentSpec spec(shipped_plugins());
    read_spec(spec, compression(patch));
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Reading, BitsDoNotDependOnThreads) {
  const std::string bits = run("{}").bits;
  EXPECT_FALSE(bits.empty());
  for (const char* patch : {R"({"run": {"threads": 2}})", R"({"run": {"threads": 7}})", R"({"run": {"log_every": 1}})"})
    EXPECT_EQ(run(patch).bits, bits) << patch;
}

TEST(Reading, LossAndGradientAreExactWhateverTheLanesAndMicroBatches) {
  const auto first = [](const std::string& cut) {
    return run(R"({"train": {"steps": 1, "precision": "f64", )" + cut + "}}").steps.front();
  };
  const results::StepLog whole = first(R"("lanes": 1, "micro_batch": 10)");
  EXPECT_GT(whole.grad_norm, 0.01);
  for (const char* cut : {R"("lanes": 1, "micro_batch": 3)", R"("lanes": 4, "micro_batch": 1)", R"("lanes": 3, "micro_batch": 2)"}) {
    const results::StepLog part = first(cut);
    EXPECT_NEAR(part.loss, whole.loss, 1e-12) << cut;
    EXPECT_NEAR(part.grad_norm, whole.grad_norm, 1e-12 * whole.grad_norm) << cut;
  }
}

/// Hidden states of one row, [time, dim].
std::vector<std::vector<double>> hidden_of(const ExperimentSpec& spec, const std::vector<std::int32_t>& ids) {
  ParameterStore store;
  const Model model(spec.model, spec.data_shape(), spec.mixer(), store);
  store.allocate(Dtype::f64);
  store.initialise(3);
  Arena arena;
  Tape tape(arena, {Dtype::f64, nullptr}, false);
  const Tensor row = tape.empty({1, static_cast<std::int64_t>(ids.size())}, Dtype::i32);
  std::copy(ids.begin(), ids.end(), row.as<std::int32_t>());
  const Tensor hidden = model.hidden(tape, row, {});
  std::vector<std::vector<double>> states;
  for (std::int64_t t = 0; t < hidden.size(1); ++t) {
    const double* at = hidden.as<double>() + t * hidden.size(2);
    states.emplace_back(at, at + hidden.size(2));
  }
  return states;
}

TEST(Reading, EveryPositionComesFromTheLastState) {
  ExperimentSpec spec(shipped_plugins());
  read_spec(spec, compression());
  const auto before = hidden_of(spec, {0, 1, 2, 3, 0, 4});
  for (std::size_t t = 1; t < 6; ++t) EXPECT_NE(before[t], before[0]) << "positions can be told apart";
  for (std::size_t changed = 0; changed < 6; ++changed) {
    std::vector<std::int32_t> ids = {0, 1, 2, 3, 0, 4};
    ids[changed] = (ids[changed] + 1) % 4;
    const auto after = hidden_of(spec, ids);
    for (std::size_t t = 0; t < 6; ++t) EXPECT_NE(after[t], before[t]) << "token " << changed << ", position " << t;
  }
}

TEST(Reading, ParametersAndOperationsOfTheDecoderAreCounted) {
  // Recall of as many positions, all of them scored, is the same model without a decoder.
  ExperimentSpec with(shipped_plugins()), without(shipped_plugins());
  read_spec(with, compression(R"({"task": {"length": 33}})"));
  read_spec(without, compression(R"({"task": {"name": "mad_recall", "vocabulary": 5, "length": 34}})"));
  const std::int64_t dim = 24, linears = 2 * (dim + dim * dim + dim), table = 33 * dim;
  EXPECT_EQ(with.parameters() - without.parameters(), linears + table);
  const Cost more = count_cost(with), less = count_cost(without);
  const double maps = 2.0 * 2.0 * 10.0 * 33.0 * static_cast<double>(dim * dim);  // two, of 10 rows
  EXPECT_DOUBLE_EQ(more.forward_flops - less.forward_flops, maps);
  EXPECT_DOUBLE_EQ(more.step_flops - less.step_flops, 3.0 * maps);
  EXPECT_EQ(more.step_tokens, less.step_tokens);
}

TEST(Reading, TheDecoderStartsAsTheReference) {
  // Matrices N(0, init_std^2), biases zero, and a table that is not trained.
  ExperimentSpec spec(shipped_plugins());
  read_spec(spec, compression());
  Trainer trainer(spec);
  const auto values = [&](const std::string& name) {
    const Tensor value = trainer.parameters().value(*trainer.parameters().find(name));
    return std::vector<float>(value.as<float>(), value.as<float>() + value.size());
  };
  for (const std::string layer : {"decoder.0.", "decoder.1."}) {
    double square = 0.0;
    for (const float x : values(layer + "weight")) square += static_cast<double>(x * x);
    EXPECT_NEAR(std::sqrt(square / 576.0), 0.1, 0.015);
    EXPECT_EQ(values(layer + "bias"), std::vector<float>(24));
    EXPECT_EQ(values(layer + "norm.weight"), std::vector<float>(24, 1.0f));
  }
  const std::vector<float> table = values("decoder.positions"), bias = values("decoder.1.bias");
  EXPECT_FLOAT_EQ(table[24], std::sin(1.0f)) << "position 1, the fastest";
  EXPECT_FLOAT_EQ(table[5 * 24 + 23], std::cos(5e-4f)) << "position 5, the slowest";
  trainer.step();
  EXPECT_EQ(values("decoder.positions"), table);
  EXPECT_NE(values("decoder.1.bias"), bias);
}

TEST(Reading, RefusesWhatCannotBe) {
  EXPECT_NE(refusal(R"({"model": {"dim": 2}})").find("model.dim: 2, expected an even number from 4"), std::string::npos)
      << refusal(R"({"model": {"dim": 2}})");
  ExperimentSpec spec(shipped_plugins());
  read_spec(spec, compression());
  DataShape data = spec.data_shape();
  EXPECT_EQ(data.reading, Reading::last);
  EXPECT_FALSE(find_misfit(spec.model, data, spec.mixer()));
  data.in_parts = true;
  const auto misfit = find_misfit(spec.model, data, spec.mixer());
  ASSERT_TRUE(misfit);
  EXPECT_EQ(misfit->path, "task");
  EXPECT_NE(misfit->reason.find("cannot be packed"), std::string::npos);
  // What is packed or has a prompt is known from the task.
  for (const auto& [task, in_parts] : {std::pair{R"({"name": "copying", "separate": true})", true}, {R"({"name": "copying"})", true},
                                       {R"({"name": "mad_recall"})", false}}) {
    ExperimentSpec other(shipped_plugins());
    Json json = compression();
    json["task"] = Document::parse(task, "task").value();
    read_spec(other, json);
    EXPECT_EQ(other.data_shape().in_parts, in_parts) << task;
    EXPECT_EQ(other.data_shape().reading, Reading::positions) << task;
  }
}

TEST(Reading, LearnsAndALeakIsSeen) {
  // 8 workers: 8 different rows of 256. Test shows the same ones, valid none: what is learned by heart is told from the rest.
  const char* const sizes = R"("task": {"vocabulary": 17, "length": 9 %s}, "train": {"steps": 300, "batch": 16})";
  const auto patch = [&](const std::string& released) {
    std::string text = sizes;
    return "{" + text.replace(text.find("%s"), 2, released) + "}";
  };
  const results::TrialRecord clean = run(patch("")), released = run(patch(R"(, "released_workers": 8)"));
  ASSERT_EQ(clean.status, results::Status::done) << clean.message;
  ASSERT_EQ(released.status, results::Status::done) << released.message;
  EXPECT_LT(clean.steps.back().loss, clean.steps.front().loss - 0.3);
  const double chance = (8.0 / 16.0 + 1.0) / 9.0;
  EXPECT_GT(value_of(released, "test", "token_accuracy"), 0.95);
  EXPECT_LT(value_of(released, "valid", "token_accuracy"), 0.4);
  EXPECT_GT(value_of(clean, "test", "token_accuracy"), chance + 0.02);
  EXPECT_LT(std::abs(value_of(clean, "test", "token_accuracy") - value_of(clean, "valid", "token_accuracy")), 0.1);
  EXPECT_EQ(summary_of(released, "shared_rows.test.9"), 64.0);
  EXPECT_EQ(summary_of(released, "shared_rows.valid.9"), 0.0);
  EXPECT_EQ(summary_of(clean, "shared_rows.test.9"), 0.0);
}

}  // namespace
}  // namespace phasor
