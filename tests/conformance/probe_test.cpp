// The causality probe (acceptance A9, L11) on every backbone and encoding, and on planted faults that it must find.

#include "core/nn/probe.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/conformance/layers.h"

namespace phasor {
namespace {

ProbeReport probe_of(const Registry& registry, const Pair& pair) {
  const BackbonePlugin* backbone = registry.find_backbone(pair.backbone);
  const EncodingPlugin* encoding = registry.find_encoding(pair.encoding);
  const auto backbone_options = options_of(backbone->options(), pair.backbone_options);
  const auto encoding_options = options_of(encoding->options(), pair.encoding_options);
  return probe({backbone, backbone_options.get(), encoding, encoding_options.get()}, width);
}

class Probe : public testing::TestWithParam<Pair> {};

TEST_P(Probe, FindsNothing) { EXPECT_EQ(probe_of(plugins(), GetParam()).text(), ""); }

INSTANTIATE_TEST_SUITE_P(All, Probe, testing::ValuesIn(pairs()), [](const auto& at) { return at.param.name; });

// Whatever is registered is among the pairs: all that go together at their default options, in a model of any width.
TEST(Probe, KnowsEveryPairThatFits) {
  const std::vector<Pair> all = pairs();
  for (const auto& backbone : plugins().backbones())
    for (const auto& encoding : plugins().encodings()) {
      const Pair wanted{"", backbone->info.name, "{}", encoding->info.name, "{}"};
      constexpr std::array widths = {width, 2 * width, 4 * width, 8 * width};
      const bool fits = std::any_of(widths.begin(), widths.end(), [&](std::int64_t dim) { return !misfit_of(wanted, dim); });
      const bool probed = std::any_of(all.begin(), all.end(), [&](const Pair& pair) {
        return pair.backbone == wanted.backbone && pair.encoding == wanted.encoding;
      });
      EXPECT_EQ(probed, fits) << wanted.backbone << " with " << wanted.encoding
                              << ": if it does not fit a model of width 16, give it options that do in layers.h";
    }
}

class Planted : public testing::Test {
 protected:
  /// What is shipped, and three backbones that nothing here has a line for.
  Planted() {
    load_plugins(registry_, default_plugin_folder());
    EXPECT_EQ(load_plugin(registry_, LEAKY_PLUGIN).problem, "");
  }
  ProbeReport report(const std::string& backbone) const {
    return probe_of(registry_, {backbone, backbone, "{}", "nope", "{}"});
  }
  Registry registry_;
};

TEST_F(Planted, IsAmongThePairs) {
  std::vector<std::string> found;
  for (const Pair& pair : pairs(registry_))
    if (!probe_of(registry_, pair).clean()) found.push_back(pair.backbone + " " + pair.encoding);
  EXPECT_EQ(found, (std::vector<std::string>{"crossing nope", "crossing learned_absolute", "forgetful nope",
                                             "forgetful learned_absolute", "leaky nope", "leaky learned_absolute"}));
}

TEST_F(Planted, ABlockMeanIsFound) {
  const ProbeReport found = report("leaky");
  EXPECT_FALSE(found.clean());
  EXPECT_TRUE(found.finite);
  // The outputs of a block that ends later than the place from which on tokens were changed.
  for (const std::int64_t t : {0, 14, 16, 48, 62, 64, 65, 128})
    EXPECT_NE(std::find(found.ahead.begin(), found.ahead.end(), t), found.ahead.end()) << t;
  EXPECT_EQ(found.gradients, (std::vector<std::int64_t>{0, 14, 16, 62, 64, 65, 128}));  // 15 and 63 end their blocks
  EXPECT_FALSE(found.documents.empty());
  EXPECT_EQ(found.text().substr(0, 18), "LEAKS: position 0,");
}

TEST_F(Planted, ForgottenStateIsFound) {
  const ProbeReport found = report("forgetful");
  EXPECT_TRUE(found.ahead.empty() && found.gradients.empty() && found.documents.empty()) << found.text();
  EXPECT_EQ(found.pieces.size(), 129u) << found.text();  // all but the first, token by token
}

TEST_F(Planted, SharedStateOfDocumentsIsFound) {
  const ProbeReport found = report("crossing");
  EXPECT_TRUE(found.ahead.empty() && found.gradients.empty() && found.pieces.empty()) << found.text();
  // The last token of the changed document is read by the next one, and each document's first reads another's last.
  EXPECT_EQ(found.documents, (std::vector<std::int64_t>{1, 5, 6, 70, 127}));
}

}  // namespace
}  // namespace phasor
