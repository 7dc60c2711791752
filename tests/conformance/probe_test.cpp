// The causality probe (acceptance A9, L11) on every backbone and encoding, and on planted faults that it must find.

#include "core/nn/probe.h"

#include <gtest/gtest.h>

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

// Every registered plugin is among the pairs, so that none is forgotten.
TEST(Probe, KnowsEveryPlugin) {
  const std::vector<Pair> all = pairs();
  const auto has = [&](const std::string& name) {
    return std::any_of(all.begin(), all.end(), [&](const Pair& pair) { return pair.backbone == name || pair.encoding == name; });
  };
  for (const auto& plugin : plugins().backbones()) EXPECT_TRUE(has(plugin->info.name)) << plugin->info.name;
  for (const auto& plugin : plugins().encodings()) EXPECT_TRUE(has(plugin->info.name)) << plugin->info.name;
}

class Planted : public testing::Test {
 protected:
  static ProbeReport report(const std::string& backbone) {
    Registry registry;
    EXPECT_EQ(load_plugin(registry, LEAKY_PLUGIN).problem, "");
    EXPECT_EQ(load_plugin(registry, std::string(PHASOR_PLUGIN_FOLDER) + "/nope.so").problem, "");
    return probe_of(registry, {backbone, backbone, "{}", "nope", "{}"});
  }
};

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
