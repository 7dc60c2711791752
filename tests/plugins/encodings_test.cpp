#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "core/base/philox.h"
#include "core/graph/tape.h"
#include "tests/plugins/support.h"

namespace phasor {
namespace {

/// One encoding of a library with its options, shape and parameters.
struct Instance {
  Instance(const std::string& file, const std::string& name, const std::string& json, const MixerShape& mixer)
      : registry(test::load({file})), shape(mixer) {
    const EncodingPlugin& plugin = *registry->find_encoding(name);
    const auto options = test::read_options(plugin, json);
    EXPECT_EQ(plugin.refuses(*options, shape), std::nullopt);
    encoding = plugin.make(*options, shape, ParameterScope(store, "encoding", 0.02));
    store.allocate(Dtype::f64);
    store.initialise(1);
  }

  Tensor random(std::int64_t heads, std::uint64_t stream) {
    const Tensor out(arena, Dtype::f64, {batch, time, heads, shape.key_dim});
    const RandomStream draws(5, Purpose::data, stream);
    for (std::int64_t i = 0; i < out.size(); ++i) out.as<double>()[i] = draws.normal(static_cast<std::uint64_t>(i));
    return out;
  }
  QueryKey apply(const QueryKey& in, std::int64_t offset = 0) {
    Tape tape(arena, {Dtype::f64, nullptr}, false);
    return encoding->on_query_key(tape, in, {}, {offset, false}, nullptr);
  }

  static constexpr std::int64_t batch = 2, time = 9;
  std::unique_ptr<Registry> registry;
  MixerShape shape;
  ParameterStore store;
  Arena arena;
  std::unique_ptr<Encoding> encoding;
};

double at(const Tensor& x, std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t i) {
  return x.as<double>()[((b * x.size(1) + t) * x.size(2) + h) * x.size(3) + i];
}

/// Every component against the formula: plane i turns by (t + position) frequency(i).
template <class Frequency>
void expect_rotated(const Tensor& in, const Tensor& out, std::int64_t dim, bool interleaved, std::int64_t position,
                    const Frequency& frequency) {
  ASSERT_EQ(out.shape(), in.shape());
  for (std::int64_t b = 0; b < in.size(0); ++b) {
    for (std::int64_t t = 0; t < in.size(1); ++t) {
      for (std::int64_t h = 0; h < in.size(2); ++h) {
        for (std::int64_t i = 0; i < dim / 2; ++i) {
          const std::int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + dim / 2;
          const double angle = static_cast<double>(t + position) * frequency(i);
          const double x = at(in, b, t, h, first), y = at(in, b, t, h, second);
          EXPECT_NEAR(at(out, b, t, h, first), x * std::cos(angle) - y * std::sin(angle), 1e-9);
          EXPECT_NEAR(at(out, b, t, h, second), x * std::sin(angle) + y * std::cos(angle), 1e-9);
        }
        for (std::int64_t i = dim; i < in.size(3); ++i) EXPECT_EQ(at(out, b, t, h, i), at(in, b, t, h, i));
      }
    }
  }
}

std::optional<std::string> refusal(const std::string& file, const std::string& name, const std::string& json,
                                   std::int64_t key_dim) {
  const auto registry = test::load({file});
  const EncodingPlugin& plugin = *registry->find_encoding(name);
  return plugin.refuses(*test::read_options(plugin, json), {64, 4, 4, key_dim, key_dim});
}

TEST(Nope, TakesNoHookAndFitsEverything) {
  Instance nope(test::shipped("nope"), "nope", "{}", {34, 2, 1, 17, 17});
  EXPECT_EQ(nope.encoding->hook(), Hook::none);
  EXPECT_TRUE(nope.encoding->relative());
  EXPECT_TRUE(nope.store.entries().empty());
  EXPECT_THROW(test::read_options(*nope.registry->find_encoding("nope"), R"({"theta": 1.0})"), UserError);
}

TEST(Rope, FollowsTheFormula) {
  const MixerShape shape{32, 4, 4, 8, 8};
  Instance rope(test::shipped("rope"), "rope", "{}", shape);
  EXPECT_EQ(rope.encoding->hook(), Hook::query_key);
  EXPECT_TRUE(rope.encoding->relative());
  EXPECT_TRUE(rope.store.entries().empty());
  const QueryKey in{rope.random(4, 0), rope.random(4, 1)};
  const auto frequency = [](std::int64_t i) { return std::pow(500000.0, -2.0 * static_cast<double>(i) / 8.0); };
  for (const std::int64_t offset : {0, 5, 65536}) {
    const QueryKey out = rope.apply(in, offset);
    expect_rotated(in.q, out.q, 8, false, offset, frequency);
    expect_rotated(in.k, out.k, 8, false, offset, frequency);
  }
}

TEST(Rope, OptionsAndGroupedHeads) {
  const MixerShape shape{32, 4, 2, 10, 8};
  Instance rope(test::shipped("rope"), "rope", R"({"theta": 100.0, "dim": 6, "layout": "interleaved", "offset": -3})",
                shape);
  const QueryKey in{rope.random(4, 0), rope.random(2, 1)};
  const QueryKey out = rope.apply(in, 7);
  const auto frequency = [](std::int64_t i) { return std::pow(100.0, -2.0 * static_cast<double>(i) / 6.0); };
  expect_rotated(in.q, out.q, 6, true, 4, frequency);
  expect_rotated(in.k, out.k, 6, true, 4, frequency);
}

TEST(Rope, ThetaOneTurnsAllPlanesAlike) {
  Instance rope(test::shipped("rope"), "rope", R"({"theta": 1})", {16, 2, 2, 8, 8});
  const QueryKey in{rope.random(2, 0), rope.random(2, 1)};
  expect_rotated(in.q, rope.apply(in).q, 8, false, 0, [](std::int64_t) { return 1.0; });
}

// layers.md 3.3b, with the rotated width in every formula. Yarn's gain is on all components of q and k.
TEST(Rope, Scaled) {
  const auto plain = [](std::int64_t i) { return std::pow(10000.0, -2.0 * static_cast<double>(i) / 8.0); };
  const auto expect = [&](const std::string& scaling, double gain, const auto& frequency) {
    Instance rope(test::shipped("rope"), "rope", R"({"theta": 10000, "dim": 8, "scaling": {)" + scaling + "}}",
                  {36, 3, 3, 12, 8});
    const QueryKey in{rope.random(3, 0), rope.random(3, 1)};
    const QueryKey out = rope.apply(in, 300);
    for (const Tensor& turned : {out.q, out.k})
      for (std::int64_t i = 0; i < turned.size(); ++i) turned.as<double>()[i] /= gain;
    const auto untouched = [](const Tensor& before, const Tensor& after) {  // beyond dim, to rounding
      for (std::int64_t i = 0; i < before.size(); ++i)
        if (i % 12 >= 8) {
          EXPECT_NEAR(after.as<double>()[i], before.as<double>()[i], 1e-14);
          after.as<double>()[i] = before.as<double>()[i];
        }
    };
    untouched(in.q, out.q);
    untouched(in.k, out.k);
    expect_rotated(in.q, out.q, 8, false, 300, frequency);
    expect_rotated(in.k, out.k, 8, false, 300, frequency);
  };
  expect(R"("kind": "linear", "factor": 4)", 1.0, [&](std::int64_t i) { return plain(i) / 4.0; });
  expect(R"("kind": "ntk", "factor": 4)", 1.0, [](std::int64_t i) {
    return std::pow(10000.0 * std::pow(4.0, 8.0 / 6.0), -2.0 * static_cast<double>(i) / 8.0);
  });
  // Turns within 256 tokens: 40.7, 4.07, .407, .0407: fast, between, slow, slow.
  expect(R"("kind": "yarn", "factor": 4, "trained_length": 256)", 0.1 * std::log(4.0) + 1.0, [&](std::int64_t i) {
    const double turns = 256.0 * plain(i) / (2.0 * std::numbers::pi);
    const double fast = i == 0 ? 1.0 : (i == 1 ? (turns - 1.0) / 31.0 : 0.0);
    return plain(i) * (fast + (1.0 - fast) / 4.0);
  });
  expect(R"("kind": "yarn", "factor": 1, "trained_length": 256)", 1.0, plain);
}

TEST(Rope, RefusesWhatDoesNotFit) {
  const auto rope = [](const std::string& json, std::int64_t key_dim) {
    return refusal(test::shipped("rope"), "rope", json, key_dim).value_or("accepted");
  };
  EXPECT_EQ(rope("{}", 17),
            "found heads of 17 components, expected an even number; set dim to an even number below 17");
  EXPECT_EQ(rope(R"({"dim": 16})", 17), "accepted");
  EXPECT_EQ(rope(R"({"dim": null})", 16), "accepted");
  EXPECT_EQ(rope(R"({"dim": 7})", 16), "dim: found 7, expected an even number");
  EXPECT_EQ(rope(R"({"dim": 18})", 16), "dim: found 18, expected at most 16, the width of a head");
  EXPECT_EQ(rope(R"({"scaling": {"kind": "ntk", "factor": 2}, "dim": 2})", 16),
            "scaling: ntk needs more than 2 rotated components, found 2");
  EXPECT_EQ(rope(R"({"scaling": {"factor": 2}})", 16), "scaling.factor: found 2, but scaling.kind is none");
  EXPECT_EQ(rope(R"({"scaling": {"kind": "yarn"}})", 16), "scaling.trained_length: not set, but yarn needs it");
  EXPECT_EQ(rope(R"({"scaling": {"kind": "yarn", "trained_length": 9, "beta": 0.5}})", 16),
            "scaling.beta: found 0.5, expected more than alpha, 1");
  for (const char* json : {R"({"theta": 0})", R"({"theta": -1})", R"({"layout": "half"})", R"({"dim": 0})",
                           R"({"offset": 0.5})", R"({"base": 10000})", R"({"scaling": {"kind": "linear", "factor": 0.5}})"}) {
    EXPECT_THROW(rope(json, 16), UserError) << json;
  }
}

TEST(Template, BuildsLoadsAndRotatesNormedVectors) {
  const MixerShape shape{32, 4, 2, 6, 8};
  Instance octaves(TEMPLATE_PLUGIN, "octaves", R"({"ratio": 4.0})", shape);
  ASSERT_EQ(octaves.store.entries().size(), 2U);
  EXPECT_EQ(octaves.store.entries()[0].name, "encoding.q_norm.weight");
  EXPECT_FALSE(octaves.store.entries()[0].decays) << "weight decay leaves norms alone";
  const QueryKey in{octaves.random(4, 0), octaves.random(2, 1)};
  const auto normed = [](const Tensor& x, Arena& arena) {
    const Tensor out(arena, Dtype::f64, x.shape());
    for (std::int64_t v = 0; v < x.size() / 6; ++v) {
      double sum = 0.0;
      for (std::int64_t i = 0; i < 6; ++i) sum += x.as<double>()[6 * v + i] * x.as<double>()[6 * v + i];
      for (std::int64_t i = 0; i < 6; ++i)
        out.as<double>()[6 * v + i] = x.as<double>()[6 * v + i] / std::sqrt(sum / 6.0 + 1e-6);
    }
    return out;
  };
  const QueryKey out = octaves.apply(in, 11);
  const auto frequency = [](std::int64_t i) { return std::pow(4.0, -static_cast<double>(i)); };
  expect_rotated(normed(in.q, octaves.arena), out.q, 6, false, 11, frequency);
  expect_rotated(normed(in.k, octaves.arena), out.k, 6, false, 11, frequency);
}

TEST(Template, ItsParametersLearn) {
  Instance octaves(TEMPLATE_PLUGIN, "octaves", "{}", {8, 2, 2, 4, 4});
  const Tensor gradients(octaves.arena, Dtype::f64, {octaves.store.flat_size()});
  for (std::int64_t i = 0; i < gradients.size(); ++i) gradients.as<double>()[i] = 0.0;
  Tape tape(octaves.arena, {Dtype::f64, nullptr}, true, gradients);
  const QueryKey in{octaves.random(2, 0), octaves.random(2, 1)};
  const QueryKey out = octaves.encoding->on_query_key(tape, in, {}, {}, nullptr);
  const std::vector<std::pair<Tensor, Tensor>> seeds = {{out.q, octaves.random(2, 2)}, {out.k, octaves.random(2, 3)}};
  tape.backward(seeds);
  for (std::int64_t i = 0; i < gradients.size(); ++i) EXPECT_GT(std::abs(gradients.as<double>()[i]), 1e-6);
}

TEST(Template, IsNotShipped) {
  Registry registry;
  for (const PluginFile& file : load_plugins(registry, default_plugin_folder()))
    EXPECT_EQ(file.problem, "") << file.path;
  EXPECT_EQ(registry.find_encoding("octaves"), nullptr);
  EXPECT_EQ(refusal(TEMPLATE_PLUGIN, "octaves", "{}", 5), "found heads of 5 components, expected an even number");
}

}  // namespace
}  // namespace phasor
