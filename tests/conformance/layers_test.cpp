// What every backbone and encoding must hold, on whole layers: nothing looks ahead, a sequence in pieces is the sequence,
// an encoding turns queries and keys without changing their length, and relative encodings are relative.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "core/base/philox.h"
#include "tests/conformance/layers.h"

namespace phasor {
namespace {

/// Positions whose output changes when a later token changes.
std::vector<std::int64_t> leaks(const std::function<std::vector<double>(const std::vector<std::int32_t>&)>& outputs) {
  const std::vector<std::int32_t> ids = ids_from(0, time_steps);
  const std::vector<double> before = outputs(ids);
  const auto width = before.size() / ids.size();
  std::vector<std::int64_t> found;
  for (const std::int64_t t : std::array<std::int64_t, 9>{0, 14, 15, 16, 62, 63, 64, 65, time_steps - 2}) {
    std::vector<std::int32_t> changed = ids;
    for (auto i = static_cast<std::size_t>(t + 1); i < ids.size(); ++i) changed[i] += time_steps;
    const std::vector<double> after = outputs(changed);
    if (!std::equal(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(width) * (t + 1), after.begin())) found.push_back(t);
  }
  return found;
}

class Layers : public testing::TestWithParam<Pair> {};

// L11, A9.
TEST_P(Layers, NothingLooksAhead) {
  Built built(GetParam(), Dtype::f32);
  EXPECT_EQ(leaks([&](const auto& ids) { return built.outputs(ids); }), std::vector<std::int64_t>{});
}

TEST_P(Layers, NoGradientReachesLaterTokens) {
  Built built(GetParam(), Dtype::f32);
  for (const std::int64_t t : {0, 15, 63, 64, 100}) {
    zero(built.gradients());
    Tape tape(built.arena(), {Dtype::f32, nullptr}, true, built.gradients());
    const Tensor hidden = built.hidden(tape, ids_from(0, time_steps), 0, nullptr);
    const Tensor seed = tape.zeros(hidden.shape());
    for (std::int64_t i = 0; i < 16; ++i) seed.as<float>()[t * 16 + i] = 1.0f;
    tape.backward(std::array{std::pair{hidden, seed}});
    const auto* embedding = static_cast<const float*>(built.gradients().data()) + built.store().find("embeddings.weight")->offset;
    const auto nonzero = [&](std::int64_t id) {
      return std::any_of(embedding + id * 16, embedding + (id + 1) * 16, [](float g) { return g != 0.0f; });
    };
    EXPECT_TRUE(nonzero(t));
    for (std::int64_t id = t + 1; id < time_steps; ++id) EXPECT_FALSE(nonzero(id)) << "from " << t << " to " << id;
  }
}

/// Largest difference between the outputs of the whole sequence and of its pieces, over many ways to cut it.
double worst_of_pieces(Built& built, Dtype dtype) {
  const std::vector<std::int32_t> ids = ids_from(0, time_steps);
  const std::vector<double> whole = built.outputs(ids);
  double worst = 0.0;
  const auto compare = [&](const std::vector<std::int64_t>& cuts) {
    Tape tape(built.arena(), {dtype, nullptr}, false);
    std::vector<State> states(static_cast<std::size_t>(built.layers()));
    std::vector<double> out;
    std::int64_t begin = 0;
    for (const std::int64_t end : cuts) {
      const std::vector<std::int32_t> piece(ids.begin() + begin, ids.begin() + end);
      for (const double value : Built::values(built.hidden(tape, piece, begin, &states))) out.push_back(value);
      begin = end;
    }
    worst = out.size() == whole.size() ? worst : 1e9;
    for (std::size_t i = 0; i < std::min(out.size(), whole.size()); ++i) worst = std::max(worst, std::abs(out[i] - whole[i]));
  };
  for (const std::int64_t cut : {1, 2, 63, 64, 65, 129}) compare({cut, time_steps});
  std::vector<std::int64_t> one_by_one;
  for (std::int64_t t = 1; t <= time_steps; ++t) one_by_one.push_back(t);
  compare(one_by_one);
  return worst;
}

// L5, A8.
TEST_P(Layers, PiecesAreTheWhole) {
  // In double through two layers with strong weights, where only a mistake is left to see; in single precision through
  // one block with weights of the usual size (0.6 / sqrt(dim)), where normalised outputs may differ by rounding.
  Built exact(GetParam(), Dtype::f64);
  EXPECT_LT(worst_of_pieces(exact, Dtype::f64), 1e-12);
  Built single(GetParam(), Dtype::f32, 0.15, 1);
  EXPECT_LT(worst_of_pieces(single, Dtype::f32), 1e-5);
}

TEST_P(Layers, GradientsGoThroughTheCarriedState) {
  Built built(GetParam(), Dtype::f64);
  const std::vector<std::int32_t> ids = ids_from(0, 20);
  const auto gradient = [&](const std::vector<std::int64_t>& cuts) {
    zero(built.gradients());
    Tape tape(built.arena(), {Dtype::f64, nullptr}, true, built.gradients());
    std::vector<State> states(static_cast<std::size_t>(built.layers()));
    std::vector<std::pair<Tensor, Tensor>> seeds;
    std::int64_t begin = 0;
    for (const std::int64_t end : cuts) {
      const std::vector<std::int32_t> piece(ids.begin() + begin, ids.begin() + end);
      const Tensor hidden = built.hidden(tape, piece, begin, &states);
      const Tensor seed = tape.empty(hidden.shape());
      for (std::int64_t i = 0; i < seed.size(); ++i) seed.as<double>()[i] = std::sin(0.7 * static_cast<double>(begin * 16 + i));
      seeds.emplace_back(hidden, seed);
      begin = end;
    }
    tape.backward(seeds);
    return Built::values(built.gradients());
  };
  const std::vector<double> whole = gradient({20});
  const double scale = std::abs(*std::max_element(whole.begin(), whole.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }));
  for (const std::vector<std::int64_t>& cuts : {std::vector<std::int64_t>{1, 20}, {2, 5, 6, 20}, {17, 18, 19, 20}}) {
    const std::vector<double> parts = gradient(cuts);
    double worst = 0.0;
    for (std::size_t i = 0; i < whole.size(); ++i) worst = std::max(worst, std::abs(parts[i] - whole[i]));
    EXPECT_LT(worst, 1e-10 * scale) << "first cut at " << cuts.front();
  }
}

INSTANTIATE_TEST_SUITE_P(All, Layers, testing::ValuesIn(pairs()), [](const auto& at) { return at.param.name; });

TEST(Leaks, APlantedLeakIsFound) {
  // Each output adds the mean of its block of 16 tokens: the future of the block leaks into its past.
  const auto leaky = [](const std::vector<std::int32_t>& ids) {
    std::vector<double> out;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      double sum = 0.0;
      const std::size_t begin = i / 16 * 16, end = std::min(ids.size(), begin + 16);
      for (std::size_t j = begin; j < end; ++j) sum += ids[j];
      out.push_back(ids[i] + sum / 16.0);
    }
    return out;
  };
  EXPECT_FALSE(leaks(leaky).empty());
}

// L16: what a plugin initialises is there after construction, and decay parameters and biases are not in the decay group.
TEST_P(Layers, DecayAndBiasStartInTheirRange) {
  struct Documented {
    const char* name;
    double low, high;
  };
  // The last part of the name: A in [1e-3, 16] for every family; steps of 1e-4 to 0.1 before their softplus; forget biases 0.
  static const std::vector<Documented> ranges = {{"A_log", -INFINITY, std::log(16.0)},
                                                 {"dt_bias", std::log(std::expm1(1e-4)), std::log(std::expm1(0.1))},
                                                 {"gk_proj.1.bias", 0.0, 0.0},
                                                 {"f_proj.bias", 0.0, 0.0},
                                                 {"phi_bias", 0.0, 0.0}};
  const Built built(GetParam(), Dtype::f64);
  bool gated = false;
  for (const ParameterEntry& entry : built.store().entries()) {
    for (const Documented& range : ranges) {
      if (!entry.name.ends_with(std::string(".") + range.name)) continue;
      gated = true;
      EXPECT_FALSE(entry.decays) << entry.name;
      const Tensor value = built.store().value(entry);
      for (std::int64_t i = 0; i < value.size(); ++i) {
        EXPECT_GE(value.as<double>()[i], range.low - 1e-12) << entry.name;
        EXPECT_LE(value.as<double>()[i], range.high + 1e-12) << entry.name;
      }
    }
    if (entry.name.ends_with("bias") || entry.name.ends_with("norm.weight")) {
      EXPECT_FALSE(entry.decays) << entry.name;
    }
    if (entry.name.ends_with("q_proj.weight")) {
      EXPECT_TRUE(entry.decays) << entry.name;
    }
  }
  EXPECT_TRUE(gated || (GetParam().backbone != "gla" && GetParam().backbone != "gated_deltanet"));
}

// L13: any head width of gla, keys and values of different widths too; an odd one refuses rotations by name.
TEST(HeadSizes, AnyWidthIsRightOrRefused) {
  for (const std::int64_t head : {1, 4, 8, 16, 24, 80, 128, 256, 257, 512}) {
    for (const char* expand_v : {"1.0", "2.0"}) {
      const Pair pair{"", "gla", fmt::format(R"({{"heads": 1, "expand_k": 1.0, "expand_v": {}}})", expand_v), "nope", "{}"};
      ASSERT_FALSE(misfit_of(pair, head)) << head;
      const double init_std = 1.0 / std::sqrt(static_cast<double>(head));
      Built exact(pair, Dtype::f64, init_std, 1, head), single(pair, Dtype::f32, init_std, 1, head);
      const std::vector<double> want = exact.outputs(ids_from(0, 9)), got = single.outputs(ids_from(0, 9));
      for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-4) << "head " << head << ", element " << i;
    }
    for (const char* encoding : {"rope", "selective_rope"}) {
      const auto misfit = misfit_of({"", "gla", R"({"heads": 1, "expand_k": 1.0})", encoding, "{}"}, head);
      EXPECT_EQ(misfit.has_value(), head % 2 != 0) << encoding << ", head " << head;
      if (!misfit) continue;
      EXPECT_EQ(misfit->path, "model.encoding");
      EXPECT_EQ(misfit->reason.find(std::string(encoding) + " does not fit"), 0u) << misfit->reason;
      EXPECT_NE(misfit->reason.find(std::to_string(head)), std::string::npos) << misfit->reason;
      EXPECT_NE(misfit->reason.find("even"), std::string::npos) << misfit->reason;
    }
  }
  // The value after expansion is named where heads do not come out whole.
  const auto misfit = misfit_of({"", "gla", R"({"heads": 3, "expand_k": 0.5})", "nope", "{}"}, 16);
  ASSERT_TRUE(misfit);
  EXPECT_EQ(misfit->path, "model.backbone");
  EXPECT_NE(misfit->reason.find("dim * expand_k = 8"), std::string::npos) << misfit->reason;
}

class Encodings : public testing::TestWithParam<Pair> {};

TEST_P(Encodings, KeepLengthsAndAreRelative) {
  const EncodingPlugin& plugin = *plugins().find_encoding(GetParam().encoding);
  const auto options = options_of(plugin.options(), GetParam().encoding_options);
  const MixerShape shape{16, 2, 2, 8, 8};
  ParameterStore store;
  const auto encoding = plugin.make(*options, shape, ParameterScope(store, "", 0.5));
  store.allocate(Dtype::f64);
  store.initialise(5);
  if (!contains(Hook::query_key, encoding->hook()) || encoding->hook() == Hook::none) return;

  constexpr std::int64_t prefix = 9, later = 12, window = 4;
  Arena arena;
  Tape tape(arena, {Dtype::f64, nullptr}, false);
  const auto random = [&](std::uint64_t what, std::int64_t time, std::int64_t width, std::int64_t from) {
    const Tensor t = tape.empty({1, time, width});
    const RandomStream stream(1, Purpose::statistics, what);
    for (std::int64_t i = 0; i < t.size(); ++i) t.as<double>()[i] = stream.normal(static_cast<std::uint64_t>(from * width + i));
    return t;
  };
  // The later tokens are the same; what stands before them differs in content, or is absent.
  const auto scores = [&](std::int64_t before, std::uint64_t content) {
    const auto input = [&](std::uint64_t what, std::int64_t width) {
      const Tensor all = tape.empty({1, before + later, width});
      const Tensor head = random(what + content, before, width, 1000), tail = random(what, later, width, 0);
      std::copy_n(head.as<double>(), head.size(), all.as<double>());
      std::copy_n(tail.as<double>(), tail.size(), all.as<double>() + head.size());
      return all;
    };
    const Tensor q = input(1, 16).reshape({1, before + later, 2, 8}), k = input(2, 16).reshape({1, before + later, 2, 8});
    const QueryKey turned = encoding->on_query_key(tape, {q, k}, input(3, 16), {}, nullptr);
    std::vector<double> out;
    for (std::int64_t h = 0; h < 2; ++h)
      for (std::int64_t i = window; i < later; ++i)
        for (std::int64_t j = window; j <= i; ++j) {
          double dot = 0.0;
          for (std::int64_t d = 0; d < 8; ++d)
            dot += turned.q.as<double>()[((before + i) * 2 + h) * 8 + d] * turned.k.as<double>()[((before + j) * 2 + h) * 8 + d];
          out.push_back(dot);
        }
    const auto length = [](const Tensor& t, std::int64_t row) {
      double sum = 0.0;
      for (std::int64_t d = 0; d < 8; ++d) sum += t.as<double>()[row * 8 + d] * t.as<double>()[row * 8 + d];
      return std::sqrt(sum);
    };
    for (std::int64_t row = 0; row < 2 * (before + later); ++row) EXPECT_NEAR(length(turned.q, row), length(q, row), 1e-12);
    return out;
  };
  const std::vector<double> alone = scores(0, 0), one = scores(prefix, 10), other = scores(prefix, 20);
  if (!encoding->relative()) return;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_NEAR(one[i], alone[i], 1e-9);
    EXPECT_NEAR(other[i], alone[i], 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Encodings, testing::ValuesIn([] {
                           std::vector<Pair> first;  // the encodings repeat from backbone to backbone
                           for (const Pair& pair : pairs())
                             if (std::none_of(first.begin(), first.end(), [&](const Pair& other) {
                                   return other.encoding == pair.encoding && other.encoding_options == pair.encoding_options;
                                 }))
                               first.push_back(pair);
                           return first;
                         }()),
                         [](const auto& at) { return at.param.name; });

}  // namespace
}  // namespace phasor
