// What users of trainers have suffered (acceptance L14, L15, L20, L40), asked of the Trainer with tasks and a backbone that
// are made for it.

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/base/philox.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/gla/gla.h"
#include "core/ops/linear/linear.h"
#include "experiments/trainer.h"
#include "experiments/trial.h"
#include "tests/experiments/fixture.h"

namespace phasor {
namespace {

/// Rows whose contents and targets the test decides: two tokens, two classes.
class Planted final : public Task {
 public:
  struct Options {
    std::string kind = "echo";
    std::int64_t rows = 10, tokens = 4;
    void fields(FieldList& f) {
      f.choice("kind", kind, {"echo", "unequal", "one_empty_row", "empty", "losses", "ignored", "ignored_right", "unscored"}, "what rows hold");
      f.integer("rows", rows, "rows of every split", Range::at_least(1));
      f.integer("tokens", tokens, "positions of a row", Range::at_least(1));
    }
  };
  static std::optional<std::string> refuses(const Options&) { return std::nullopt; }
  explicit Planted(const Options& options) : o_(options) {}

  std::int64_t vocabulary() const override { return 2; }
  std::vector<Slice> slices(Split split) const override { return {{split, o_.tokens, o_.rows, 0}}; }
  std::int64_t tokens(const Slice&) const override { return o_.tokens; }
  std::int64_t max_targets(const Slice&) const override { return o_.kind == "unscored" ? 0 : o_.tokens; }
  std::vector<Unit> units(const Slice&, const Sample&) const override { return {}; }
  double chance() const override { return 0.5; }
  std::string label() const override { return o_.kind; }

  void sample(const Slice&, std::uint64_t seed, std::int64_t index, Sample out) const override {
    const RandomStream random(seed, Purpose::data, static_cast<std::uint64_t>(index));
    for (std::int64_t t = 0; t < o_.tokens; ++t) {
      const auto at = static_cast<std::size_t>(t);
      const std::int32_t draw = random.uniform(static_cast<std::uint64_t>(t)) < 0.5 ? 0 : 1;
      out.tokens[at] = draw;
      out.targets[at] = draw;
      if (o_.kind == "unequal" && t >= index % 4) out.targets[at] = -1;  // no target in every fourth row
      if (o_.kind == "empty" || (o_.kind == "one_empty_row" && index == 3)) out.targets[at] = -1;
      if (o_.kind == "losses") {  // 0 is predicted: the model is sure of token 0 and badly wrong about token 1
        out.tokens[at] = index < 128 ? 0 : 1;
        out.targets[at] = 0;
      }
      if (o_.kind.starts_with("ignored")) {  // of 100 positions 10 count, nine of class 0 and one of class 1
        out.targets[at] = t % 10 != 3 ? -1 : (t == 53 ? 1 : 0);
        if (t % 10 == 3) out.tokens[at] = o_.kind == "ignored" ? 0 : out.targets[at];
      }
    }
  }

 private:
  Options o_;
};

/// Linear attention with decay whose kept-state distance can be chosen: 1 is the recurrence token by token.
class Chunked final : public Mixer {
 public:
  struct Options {
    std::int64_t chunk = 0;
    void fields(FieldList& f) { f.integer("chunk", chunk, "as in ops::gla", Range::at_least(0)); }
  };
  static std::optional<std::string> refuses(const Options&, std::int64_t) { return std::nullopt; }
  static MixerShape shape(const Options&, std::int64_t dim) { return {dim, 1, 1, dim, dim}; }
  static Hook offers(const Options&) { return Hook::none; }
  Chunked(const Options& options, std::int64_t dim, double, const ParameterScope& scope) : chunk_(options.chunk) {
    for (const char* name : {"q.weight", "k.weight", "v.weight", "g.weight"}) in_.push_back(scope.weight(name, dim, dim));
    out_ = scope.weight("o_proj.weight", dim, dim);
  }
  Tensor forward(Tape& tape, const Tensor& x, const Encoding&, const SequenceContext& context, State* state) const override {
    std::vector<Tensor> parts;
    for (const Parameter& weight : in_)
      parts.push_back(ops::linear(tape, x, weight(), {}).reshape({x.size(0), x.size(1), 1, x.size(2)}));
    const Tensor gate = ops::log_gate(tape, parts[3], 1.0, std::nullopt);
    const auto mixed = ops::gla(tape, parts[0], parts[1], parts[2], gate, 0.25, state == nullptr ? Tensor() : state->get("s"),
                                state != nullptr, chunk_, context.starts);
    if (state != nullptr) state->set("s", mixed.state);
    return ops::linear(tape, mixed.o.reshape(x.shape()), out_(), {});
  }

 private:
  std::int64_t chunk_;
  std::vector<Parameter> in_;
  Parameter out_;
};

const Registry& planted_plugins() {
  static const Registry* const registry = [] {
    auto* made = new Registry;
    load_plugins(*made, PHASOR_PLUGIN_FOLDER);
    made->task<Planted>("planted", 1, "rows that a test decides");
    made->backbone<Chunked>("chunked", 1, "the distance of kept states is an option");
    return made;
  }();
  return *registry;
}

/// A small experiment on a planted task, `patch` merged over it.
Json planted(const std::string& patch) {
  Document base = Document::parse(R"({
    "task": {"name": "planted"},
    "model": {"dim": 8, "layers": 1, "init_std": 0.2, "mlp": {"width": 8},
              "backbone": {"name": "gla"}, "encoding": {"name": "nope"}},
    "optimizer": {"name": "adamw", "lr": 0.01, "weight_decay": 0.1},
    "train": {"steps": 10, "batch": 1}
  })", "planted");
  base.require_none();
  Document over = Document::parse(patch, "patch");
  over.require_none();
  merge(base.value(), over.value());
  return base.value();
}

struct Started {
  explicit Started(const std::string& patch) : spec(planted_plugins()) {
    read_spec(spec, planted(patch));
    trainer = std::make_unique<Trainer>(spec);
  }
  std::vector<double> parameters() const {
    const Tensor& flat = trainer->parameters().flat();
    std::vector<double> out;
    for (std::int64_t i = 0; i < flat.size(); ++i)
      out.push_back(flat.dtype() == Dtype::f64 ? flat.as<double>()[i] : static_cast<double>(flat.as<float>()[i]));
    return out;
  }
  ExperimentSpec spec;
  std::unique_ptr<Trainer> trainer;
};

results::TrialRecord run(const std::string& patch) {
  ExperimentSpec spec(planted_plugins());
  read_spec(spec, planted(patch));
  return run_trial(spec, {});
}

double summary_of(const results::TrialRecord& record, const std::string& name) {
  for (const auto& [key, value] : record.summary)
    if (key == name) return value;
  return NAN;
}

// L14: one batch of ten without targets.
TEST(WithoutTargets, AnEmptyBatchIsCountedAndChangesNothing) {
  const std::string patch = R"({"task": {"kind": "one_empty_row"}, "run": {"log_every": 1}})";
  const results::TrialRecord record = run(patch);
  ASSERT_EQ(record.status, results::Status::done) << record.message;
  EXPECT_EQ(summary_of(record, "steps_without_targets"), 1.0);
  EXPECT_EQ(record.steps.size(), 9u);
  for (const auto& step : record.steps) EXPECT_TRUE(std::isfinite(step.loss) && std::isfinite(step.grad_norm)) << step.step;
  for (const auto& point : record.evals) {
    EXPECT_TRUE(std::isfinite(point.value)) << point.metric;
    const std::int64_t count = point.metric == "sequence_accuracy" ? 9 : (point.metric == "class_accuracy" ? 2 : 36);
    EXPECT_EQ(point.count, count) << point.metric;  // the empty row does not count
  }

  Started started(patch);
  std::int64_t empty = 0;
  for (int i = 0; i < 10; ++i) {
    const std::vector<double> before = started.parameters();
    const StepResult result = started.trainer->step();
    empty += result.targets == 0 ? 1 : 0;
    EXPECT_EQ(started.parameters() == before, result.targets == 0) << "step " << i;
  }
  EXPECT_EQ(empty, 1);
}

// L14: all batches empty.
TEST(WithoutTargets, NoTargetsAtAllIsAnError) {
  const results::TrialRecord record = run(R"({"task": {"kind": "empty"}})");
  EXPECT_EQ(record.status, results::Status::error);
  EXPECT_NE(record.message.find("scores nothing"), std::string::npos) << record.message;
}

TEST(WithoutTargets, ATaskThatScoresNothingIsAMistakeOfTheFile) {
  try {
    run(R"({"task": {"kind": "unscored"}})");
    FAIL() << "it was accepted";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("no training row has a scored position"), std::string::npos) << error.what();
  }
}

// L15: no length is special, and the distance of kept states does not matter.
TEST(AnyLength, FiveStepsSucceed) {
  for (const int length : {1, 2, 16, 63, 64, 65, 100})
    for (const char* conv : {"0", "4"}) {
      const std::string task = R"({"task": {"tokens": )" + std::to_string(length) + R"(}, "train": {"steps": 5, "batch": 2},)";
      const results::TrialRecord record = run(task + R"("model": {"backbone": {"short_conv": )" + conv + "}}}");
      EXPECT_EQ(record.status, results::Status::done) << length << ": " << record.message;
      const auto first = [&](int chunk) {
        Started started(task + R"("model": {"backbone": {"name": "chunked", "chunk": )" + std::to_string(chunk) + "}}}");
        const double loss = started.trainer->step().loss;
        for (int i = 0; i < 4; ++i) EXPECT_TRUE(std::isfinite(started.trainer->step().loss));
        return loss;
      };
      const double recurrent = first(1);
      for (const int chunk : {0, 16, 64, 128}) EXPECT_NEAR(first(chunk), recurrent, 1e-5) << "length " << length << ", chunk " << chunk;
    }
}

/// A model that reads off the token alone: class 1 gets the logit `zero` at token 0 and `one` at token 1, class 0 gets 0.
void decide(Trainer& trainer, double zero_logit, double one_logit) {
  const Tensor& flat = trainer.parameters().flat();
  std::fill_n(flat.as<float>(), flat.size(), 0.0f);
  const auto set = [&](const char* name, std::vector<double> values) {
    const ParameterEntry* entry = trainer.parameters().find(name);
    ASSERT_NE(entry, nullptr) << name;
    const Tensor to = trainer.parameters().value(*entry);
    ASSERT_EQ(to.size(), static_cast<std::int64_t>(values.size())) << name;
    for (std::size_t i = 0; i < values.size(); ++i) to.as<float>()[i] = static_cast<float>(values[i]);
  };
  const double root = std::sqrt(2.0);  // what the norm makes of (1, 0)
  set("embeddings.weight", {1.0, 0.0, 0.0, 1.0});
  set("norm.weight", {1.0, 1.0});
  set("lm_head.weight", {0.0, 0.0, zero_logit / root, one_logit / root});
}

const char* const tiny = R"("model": {"dim": 2, "backbone": {"heads": 1}})";

SliceResult evaluate(Started& started) {
  Trainer& trainer = *started.trainer;
  return trainer.evaluate(make_evaluation_data(trainer.task(), trainer.task().slices(Split::valid).front(), 1));
}

// L40: 128 rows of loss 1, two of loss 5.
TEST(Means, EvaluationIsOverTokensWhateverTheBatch) {
  double first = 0.0;
  for (const int micro : {1, 7, 64, 130}) {
    Started started(std::string("{") + tiny + R"(, "task": {"kind": "losses", "rows": 130, "tokens": 3},
      "train": {"batch": 130, "lanes": 1, "micro_batch": )" + std::to_string(micro) + "}}");
    decide(*started.trainer, std::log(std::exp(1.0) - 1.0), std::log(std::exp(5.0) - 1.0));
    const SliceResult result = evaluate(started);
    EXPECT_NEAR(result.loss, 138.0 / 130.0, 1e-5) << micro;  // not 2.3333
    EXPECT_EQ(result.tokens, 390);
    if (micro == 1) first = result.loss;
    EXPECT_NEAR(result.loss, first, 1e-9) << micro;
  }
}

// L40: one batch of 64 is four of 16, with unequal numbers of targets per row (none in every fourth).
TEST(Means, AccumulationIsTheWholeBatch) {
  const auto steps = [](const std::string& precision, const std::string& cut) {
    Started started(R"({"task": {"kind": "unequal", "rows": 64, "tokens": 5}, "optimizer": {"name": "sgd", "lr": 1.0},
      "train": {"batch": 64, "precision": ")" + precision + R"(", )" + cut + "}}");
    const StepResult result = started.trainer->step();
    EXPECT_EQ(result.targets, 16 * (0 + 1 + 2 + 3));
    std::vector<double> numbers = started.parameters();  // with plain SGD the gradient
    numbers.push_back(result.loss);
    return numbers;
  };
  for (const auto& [precision, tolerance] : {std::pair{"f64", 1e-12}, std::pair{"f32", 1e-6}}) {
    const std::vector<double> whole = steps(precision, R"("lanes": 1, "micro_batch": 64)");
    for (const char* cut : {R"("lanes": 1, "micro_batch": 16)", R"("lanes": 4, "micro_batch": 16)", R"("lanes": 4, "micro_batch": 5)"}) {
      const std::vector<double> parts = steps(precision, cut);
      ASSERT_EQ(parts.size(), whole.size());
      double worst = 0.0;
      for (std::size_t i = 0; i < parts.size(); ++i) worst = std::max(worst, std::abs(parts[i] - whole[i]));
      EXPECT_LE(worst, tolerance) << precision << ", " << cut;
    }
  }
}

// L20: 100 positions of which 90 are ignored, whatever is predicted there.
TEST(Accuracy, IgnoredPositionsDoNotCount) {
  const auto result_of = [](const std::string& kind) {
    Started started(std::string("{") + tiny + R"(, "task": {"rows": 1, "tokens": 100, "kind": ")" + kind + R"("}})");
    decide(*started.trainer, -1.0, 1.0);  // predicts the token itself
    return evaluate(started);
  };
  const SliceResult always_zero = result_of("ignored");
  EXPECT_EQ(always_zero.tokens, 10);
  EXPECT_EQ(always_zero.token_accuracy, 0.9);
  EXPECT_EQ(always_zero.sequence_accuracy, 0.0);
  EXPECT_EQ(always_zero.class_accuracy, 0.5) << "all of one class, none of the other";
  EXPECT_EQ(always_zero.classes, 2);
  const SliceResult perfect = result_of("ignored_right");
  EXPECT_EQ(perfect.token_accuracy, 1.0);
  EXPECT_EQ(perfect.sequence_accuracy, 1.0);
  EXPECT_EQ(perfect.class_accuracy, 1.0);
}

}  // namespace
}  // namespace phasor
