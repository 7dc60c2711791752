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
  for (const char* json : {R"({"theta": 0})", R"({"theta": -1})", R"({"layout": "half"})", R"({"dim": 0})",
                           R"({"offset": 0.5})", R"({"base": 10000})"}) {
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
