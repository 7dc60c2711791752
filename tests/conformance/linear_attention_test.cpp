// Linear attention against what it stands for: the recurrence in double under every decay, the softmax attention that
// random features estimate, the cosine weights; what is refused, and how random rows start.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/ops/attention/attention.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/feature_map/feature_map.h"
#include "core/ops/l2_norm/l2_norm.h"
#include "core/ops/linear_attention/linear_attention.h"
#include "core/ops/shared_head_linear/shared_head_linear.h"
#include "tests/conformance/layers.h"

namespace phasor {
namespace {

using Values = std::vector<double>;

double distance(const Values& got, const Values& want) {
  double worst = 0.0, top = 0.0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (i >= got.size() || !std::isfinite(got[i])) return INFINITY;
    worst = std::max(worst, std::abs(got[i] - want[i]));
    top = std::max(top, std::abs(want[i]));
  }
  return worst == 0.0 ? 0.0 : worst / top;
}

double largest(const Values& values) {
  double top = 0.0;
  for (const double value : values) top = std::max(top, std::abs(value));
  return top;
}

/// Uniform in [low, 1), the same in both precisions.
Tensor random(Tape& tape, const Shape& shape, std::uint64_t stream, double low = -1.0) {
  const RandomStream draws(3, Purpose::data, stream);
  const Tensor out = tape.empty(shape);
  for (std::int64_t i = 0; i < out.size(); ++i) {
    const auto value = static_cast<float>(low + (1.0 - low) * draws.uniform(static_cast<std::uint64_t>(i)));
    if (tape.dtype() == Dtype::f64)
      out.as<double>()[i] = value;
    else
      out.as<float>()[i] = value;
  }
  return out;
}

/// A7: one constant decay, or a weak one with a single step of -60.
class Decays : public testing::TestWithParam<double> {
 protected:
  static constexpr std::int64_t key = 6, value = 5;

  static double decay_at(std::int64_t t, std::int64_t time) {
    return GetParam() != -60.0 ? static_cast<double>(static_cast<float>(GetParam())) : (t == time / 2 ? -60.0 : static_cast<double>(-0.01f));
  }

  /// Outputs, and gradients of q, k, v and the decay.
  static std::array<Values, 5> run(Dtype dtype, std::int64_t time, bool normalise) {
    Arena arena;
    arena.poison(true);
    Tape tape(arena, {dtype, nullptr}, true);
    const Tensor q = tape.variable(random(tape, {1, time, 1, key}, 1, 0.1)), k = tape.variable(random(tape, {1, time, 1, key}, 2, 0.1));
    const Tensor v = tape.variable(random(tape, {1, time, 1, value}, 3)), decay = tape.variable(tape.empty({1, time, 1}));
    for (std::int64_t t = 0; t < time; ++t)
      if (dtype == Dtype::f64)
        decay.as<double>()[t] = decay_at(t, time);
      else
        decay.as<float>()[t] = static_cast<float>(decay_at(t, time));
    const Tensor o = ops::linear_attention(tape, q, k, v, decay, 0.5, normalise).o;
    std::array<Values, 5> out{Built::values(o)};
    tape.backward(std::array{std::pair{o, random(tape, o.shape(), 4)}});
    std::size_t next = 1;
    for (const Tensor& leaf : {q, k, v, decay}) out[next++] = Built::values(tape.leaf_gradient(leaf));
    return out;
  }

  /// The state, one token after the other.
  static Values oracle(std::int64_t time, bool normalise) {
    Arena arena;
    Tape tape(arena, {Dtype::f64, nullptr}, false);
    const Tensor q = random(tape, {time, key}, 1, 0.1), k = random(tape, {time, key}, 2, 0.1), v = random(tape, {time, value}, 3);
    std::array<std::array<double, value + 1>, key> state{};
    Values out;
    for (std::int64_t t = 0; t < time; ++t) {
      std::array<double, value + 1> read{};
      for (std::size_t i = 0; i < key; ++i)
        for (std::size_t j = 0; j <= value; ++j) {
          const double weight = k.as<double>()[t * key + static_cast<std::int64_t>(i)];
          const double add = j < value ? weight * v.as<double>()[t * value + static_cast<std::int64_t>(j)] : weight;
          state[i][j] = std::exp(decay_at(t, time)) * state[i][j] + add;
          read[j] += 0.5 * q.as<double>()[t * key + static_cast<std::int64_t>(i)] * state[i][j];
        }
      for (std::size_t j = 0; j < value; ++j) out.push_back(normalise ? read[j] / (read[value] + 1e-10) : read[j]);
    }
    return out;
  }
};

TEST_P(Decays, MatchTheOracle) {
  for (const bool normalise : {false, true})
    for (const std::int64_t time : {1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 129, 1000}) {
      const auto exact = run(Dtype::f64, time, normalise), single = run(Dtype::f32, time, normalise);
      EXPECT_LT(distance(exact[0], oracle(time, normalise)), 1e-12) << "time " << time;
      EXPECT_LT(distance(single[0], exact[0]), 1e-4) << "time " << time;
      // Where all else is forgotten, a normalised output is the value, whatever q and k: their gradients are then rounding
      // of the other ones, so one scale serves all.
      double scale = 0.0;
      for (std::size_t part = 1; part < exact.size(); ++part) scale = std::max(scale, largest(exact[part]));
      for (std::size_t part = 1; part < exact.size(); ++part) {
        const double top = normalise ? scale : largest(exact[part]);
        for (std::size_t i = 0; i < exact[part].size(); ++i)
          ASSERT_LE(std::abs(single[part][i] - exact[part][i]), 1e-4 * top) << "part " << part << ", time " << time;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Strengths, Decays, testing::Values(-1e-6, -0.05, -1.5, -5.0, -30.0, -60.0));

/// Random rows as an experiment gets them.
struct Rows {
  Rows(std::int64_t count, std::int64_t width, const Init& init, std::uint64_t seed)
      : weight(ParameterScope(store, "", 0.02).add("projection", {count, width}, init, true)) {
    store.allocate(Dtype::f64);
    store.initialise(seed);
  }
  ParameterStore store;
  Parameter weight;
};

/// Root mean square difference between attention by random features and softmax attention, over some seeds.
double error_of(const std::string& kind, const Init& init, std::int64_t features) {
  constexpr std::int64_t time = 12, width = 8, seeds = 24;
  Arena arena;
  Tape tape(arena, {Dtype::f64, nullptr}, false);
  const Tensor q = random(tape, {1, time, 1, width}, 1), k = random(tape, {1, time, 1, width}, 2), v = random(tape, {1, time, 1, width}, 3);
  const bool fourier = kind == "rfa";
  const Tensor unit_q = fourier ? ops::l2_norm(tape, q, 1e-6) : q, unit_k = fourier ? ops::l2_norm(tape, k, 1e-6) : k;
  ops::AttentionOptions options;
  options.scale = fourier ? 1.0 : 1.0 / std::sqrt(static_cast<double>(width));
  const Values want = Built::values(ops::attention(tape, unit_q, unit_k, v, options));
  double sum = 0.0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Rows rows(features, width, init, seed);
    const auto map = [&](const Tensor& x) {
      if (fourier) return ops::fourier_features(tape, ops::shared_head_linear(tape, x, rows.weight(), {}));
      const Tensor scaled = ops::scale(tape, x, std::pow(static_cast<double>(width), -0.25));
      return ops::positive_features(tape, ops::shared_head_linear(tape, scaled, rows.weight(), {}), scaled);
    };
    const Values got = Built::values(ops::linear_attention(tape, map(unit_q), map(unit_k), v, {}, 1.0, true).o);
    for (std::size_t i = 0; i < want.size(); ++i) sum += (got[i] - want[i]) * (got[i] - want[i]);
  }
  return std::sqrt(sum / static_cast<double>(want.size() * seeds));
}

// Sixteen times as many rows: a quarter of the error.
TEST(RandomFeatures, ConvergeToSoftmaxAttention) {
  for (const std::string kind : {"performer", "rfa"})
    for (const Init& init : {Init::normal(1.0)}) {
      const double few = error_of(kind, init, 128), many = error_of(kind, init, 2048);
      EXPECT_LT(many, 0.03) << kind;
      EXPECT_GT(few / many, 2.8) << kind;
      EXPECT_LT(few / many, 5.7) << kind;
    }
}

TEST(Cosformer, WeightsAreCosinesOfTheDistance) {
  constexpr std::int64_t time = 9, width = 4, reach = 12;
  Arena arena;
  Tape tape(arena, {Dtype::f64, nullptr}, false);
  const Tensor q = random(tape, {1, time, 1, width}, 1), k = random(tape, {1, time, 1, width}, 2), v = random(tape, {1, time, 1, 1}, 3);
  const Values got = Built::values(ops::linear_attention(tape, ops::cosine_features(tape, q, reach, 3),
                                                         ops::cosine_features(tape, k, reach, 3), v, {}, 1.0, true).o);
  for (std::int64_t t = 0; t < time; ++t) {
    double sum = 0.0, weights = 1e-10;
    for (std::int64_t s = 0; s <= t; ++s) {
      double dot = 0.0;
      for (std::int64_t i = 0; i < width; ++i)
        dot += std::max(q.as<double>()[t * width + i], 0.0) * std::max(k.as<double>()[s * width + i], 0.0);
      dot *= std::cos(std::numbers::pi * static_cast<double>(t - s) / (2.0 * reach));
      sum += dot * v.as<double>()[s];
      weights += dot;
    }
    EXPECT_NEAR(got[static_cast<std::size_t>(t)], sum / weights, 1e-12);
  }
  EXPECT_THROW(ops::cosine_features(tape, q, reach, 4), UserError);
}

std::string refusal(const std::string& options, std::int64_t dim = 16) {
  const BackbonePlugin& plugin = *plugins().find_backbone("linear_attention");
  return plugin.refuses(*options_of(plugin.options(), options), dim).value_or("accepted");
}

TEST(LinearAttention, RefusesWhatDoesNotFit) {
  EXPECT_EQ(refusal(R"({"heads": 3})"), "dim * expand_k = 16 does not split into 3 equal heads");
  EXPECT_EQ(refusal(R"({"heads": 4, "kv_heads": 3})"), "heads 4 is not a multiple of kv_heads 3");
  EXPECT_EQ(refusal(R"({"norm_k": true})"), "norm_k: the features of elementwise_product have both signs, so that their sum may vanish");
  EXPECT_EQ(refusal(R"({"norm_q": true, "feature_map": {"kind": "rfa"}})"),
            "norm_q: rfa has a norm of its own, the L2 norm before the map");
  EXPECT_EQ(refusal(R"({"norm_q": true, "feature_map": {"kind": "cosformer", "max_length": 9}})"),
            "norm_q: it would undo the cosine weights of cosformer");
  EXPECT_EQ(refusal(R"({"feature_map": {"kind": "cosformer"}})"), "feature_map.max_length: not set, but cosformer needs it");
  EXPECT_EQ(refusal(R"({"feature_map": {"kind": "relu", "max_length": 9}})"), "feature_map.max_length: relu has no such length");
  EXPECT_EQ(refusal(R"({"feature_map": {"kind": "relu", "tied": true}})"), "feature_map.tied: relu has nothing to tie");
  EXPECT_EQ(refusal(R"({"norm_q": true, "norm_k": true, "feature_map": {"kind": "performer"}})"), "accepted");
  EXPECT_THROW(refusal(R"({"feature_map": {"kind": "softmax"}})"), UserError);
}

TEST(LinearAttention, TiedMapsAreOne) {
  const Built tied({"", "linear_attention", R"({"heads": 2, "feature_map": {"tied": true}})", "nope", "{}"}, Dtype::f32);
  const Built free({"", "linear_attention", R"({"heads": 2})", "nope", "{}"}, Dtype::f32);
  EXPECT_EQ(free.store().total() - tied.store().total(), 2 * 2 * (8 * 8 + 8));  // two layers
  EXPECT_NE(tied.store().find("layers.0.attn.feature_map.layer2.bias"), nullptr);
}

}  // namespace
}  // namespace phasor
