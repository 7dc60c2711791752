// Reading rows and continuing them, as `phasor bench --decode` measures it: the tokens are those of whole passes, and what is carried
// has the bytes that its shapes say.

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "experiments/decode.h"
#include "tests/experiments/fixture.h"

namespace phasor {
namespace {

const char* const attention = R"({"model": {"backbone": {"name": "transformer", "heads": 2}, "encoding": {"name": "rope"}}})";

/// The small experiment, patched twice.
struct Spec {
  explicit Spec(const std::string& patch = "{}", const std::string& more = "{}") : spec(shipped_plugins()) {
    Json value = small_experiment(patch);
    merge(value, parse_json(more, "more"));
    read_spec(spec, value);
  }
  ExperimentSpec spec;
};

/// What the model says after every position of rows that are read whole, token by token from the start.
std::vector<std::vector<std::int32_t>> whole_passes(const ExperimentSpec& spec, std::vector<std::vector<std::int32_t>> rows, std::int64_t tokens) {
  const auto task = spec.make_task();
  ParameterStore parameters;
  const Model model(spec.model, DataShape(*task), spec.mixer(), parameters);
  parameters.allocate(Dtype::f32);
  parameters.initialise(static_cast<std::uint64_t>(spec.seed));
  Arena arena;
  std::vector<std::vector<std::int32_t>> said;
  for (std::int64_t i = 0; i < tokens; ++i) {
    said.emplace_back();
    for (std::vector<std::int32_t>& row : rows) {
      Tape tape(arena, Stream{}, false);
      const auto time = static_cast<std::int64_t>(row.size());
      const Tensor ids = tape.empty({1, time}, Dtype::i32);
      std::copy(row.begin(), row.end(), ids.as<std::int32_t>());
      const Tensor hidden = model.hidden(tape, ids, {});
      const Tensor logits = model.head(tape, hidden.reshape({time, hidden.size(2)}));
      const std::span<const float> last(logits.as<float>() + (time - 1) * logits.row_stride(), static_cast<std::size_t>(logits.width()));
      const auto best = std::max_element(last.begin(), last.end()) - last.begin();
      row.push_back(static_cast<std::int32_t>(best + task->classes().first));
      said.back().push_back(row.back());
    }
  }
  return said;
}

class Decoding : public testing::TestWithParam<const char*> {};

TEST_P(Decoding, TokensAreThoseOfWholePassesWhateverThreadsAndMicroBatches) {
  for (const char* split : {R"({"run": {"threads": 1}, "train": {"micro_batch": 5, "lanes": 1}})",
                            R"({"run": {"threads": 2}, "train": {"micro_batch": 2, "lanes": 2}})"}) {
    const Spec small(GetParam(), split);
    Continuation model(small.spec, 5);
    model.read(4);
    const auto rows = model.read_tokens();
    ASSERT_EQ(rows.size(), 5u);
    ASSERT_EQ(rows.front().size(), 4u);
    EXPECT_NE(rows[0], rows[1]);
    const auto expected = whole_passes(small.spec, rows, 6);
    for (const std::vector<std::int32_t>& next : expected) {
      EXPECT_EQ(model.next_tokens(), next);
      model.step();
    }
    model.read(4);
    EXPECT_EQ(model.next_tokens(), expected.front()) << "it forgets what it read before";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Decoding,
                         testing::Values("{}", attention,
                                         R"({"model": {"backbone": {"name": "transformer", "heads": 2, "window": 3}, "encoding": {"name": "rope"}}})",
                                         R"({"model": {"backbone": {"name": "gated_deltanet", "heads": 2}}})"),
                         [](const auto& one) { return "model" + std::to_string(one.index); });

TEST(DecodingBytes, StatesAreWhatTheirShapesSay) {
  const Spec small, softmax(attention);
  Continuation linear(small.spec, 3), quadratic(softmax.spec, 3);
  // Per layer: a state of 2 heads x 8 x 8, windows of 4 steps of q, k, v and of the phase, phases of 2 heads x 4 planes in f64.
  const std::int64_t carried = 2 * (4 * (2 * 8 * 8 + 4 * (3 * 16 + 8)) + 8 * 2 * 4);
  for (const std::int64_t tokens : {5, 9}) {
    linear.read(tokens);
    EXPECT_EQ(linear.state_bytes(), 3 * carried);
    quadratic.read(tokens);
    EXPECT_EQ(quadratic.state_bytes(), 3 * 2 * 2 * tokens * 16 * 4);  // layers, k and v
  }
  // Every parameter but the rows of the table that no token of the three can ask for (classes of S2 are fewer than three rows).
  const std::int64_t vocabulary = small.spec.make_task()->vocabulary();
  EXPECT_EQ(linear.least_step_bytes(), 4 * (linear.parameters() - (vocabulary - 3) * 16) + 3 * carried);
}

TEST(DecodingBytes, AGrowingCacheUsesItsMemoryAgain) {
  const Spec softmax(attention);
  Continuation model(softmax.spec, 1);
  model.read(4);
  for (int i = 0; i < 2000; ++i) model.step();
  const std::int64_t cache = model.state_bytes();
  EXPECT_EQ(cache, 2 * 2 * 2004 * 16 * 4);
  EXPECT_LT(model.memory_bytes(), 40 * cache) << "a block for every length would be 500 times as much";
}

TEST(DecodingBytes, AStepOfTheCountIsAsLargeAsItsCache) {
  const Spec small, softmax(attention);
  const Continuation linear(small.spec, 1), quadratic(softmax.spec, 1);
  const auto bytes = [](const Continuation& model, std::int64_t tokens) { return model.count_step(1, tokens).total().bytes; };
  EXPECT_EQ(bytes(linear, 50), bytes(linear, 5));
  // Per layer and token more: keys and values are copied (read, written) and read by the scores.
  EXPECT_EQ(bytes(quadratic, 50) - bytes(quadratic, 5), 2 * 45 * 3 * 2 * 16 * 4);
}

TEST(DecodingContexts, StayWithinTheLongestRow) {
  const Spec small;  // trained at 10 (with a token before), tested up to 15
  EXPECT_EQ(decoded_tokens(small.spec), 2);
  EXPECT_EQ(default_contexts(small.spec), (std::vector<std::int64_t>{2, 11, 14}));
}

TEST(DecodingResults, EveryRoundIsCounted) {
  std::deque<ExperimentSpec> specs;
  for (const char* patch : {"{}", attention}) read_spec(specs.emplace_back(shipped_plugins()), small_experiment(patch));
  const std::vector<DecodeResult> found = measure_decoding(specs, {.rows = 3, .contexts = {7, 3}, .rounds = 2, .training = true});
  ASSERT_EQ(found.size(), 2u);
  for (const DecodeResult& result : found) {
    EXPECT_EQ(result.rows, 3);
    EXPECT_EQ(result.training_seconds.size(), 2u);
    EXPECT_EQ(result.prefill_seconds.size(), 2u);
    ASSERT_EQ(result.places.size(), 2u);
    EXPECT_EQ(result.places[0].context, 3);
    EXPECT_EQ(result.places[1].context, 7);
    EXPECT_EQ(result.main, 1u);
    for (const DecodeResult::Place& place : result.places) {
      EXPECT_EQ(place.step_seconds.size(), 4u);
      for (const double seconds : place.step_seconds) EXPECT_GT(seconds, 0.0);
      EXPECT_GT(place.step.total().calls, 0);
    }
    EXPECT_GT(result.memory_bytes, 4 * result.parameters);
  }
  EXPECT_EQ(found[0].places[0].state_bytes, found[0].places[1].state_bytes);
  EXPECT_EQ(found[1].places[1].state_bytes, 2 * 2 * 7 * 16 * 4);
}

TEST(DecodingResults, ARowThatIsReadAsAWholeHasNothingToContinue) {
  const Spec mad(R"({"task": {"name": "mad_compression", "vocabulary": 8, "length": 8,
                              "train": {"rows": 20}, "valid": {"rows": 5}, "test": {"rows": 5}}})");
  EXPECT_THROW(Continuation(mad.spec, 1), UserError);
}

}  // namespace
}  // namespace phasor
