// Parameter counts of the published models (paper, section 2.9 of the notes): they pin down every shape at once.

#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "core/nn/model.h"
#include "core/plugin/loader.h"
#include "core/plugin/registry.h"
#include "core/spec/problems.h"

namespace phasor {
namespace {

const Registry& plugins() {
  static const std::unique_ptr<Registry> registry = [] {
    auto made = std::make_unique<Registry>();
    load_plugins(*made, default_plugin_folder());
    return made;
  }();
  return *registry;
}

template <class Plugin>
std::unique_ptr<Options> options_of(const Plugin& plugin, const std::string& json) {
  std::unique_ptr<Options> options = plugin.options();
  FieldList fields;
  options->fields(fields);
  Document document = Document::parse(json, "options");
  read_fields(fields, document.value(), "", document, fields);
  document.require_none();
  return options;
}

struct Sizes {
  std::int64_t dim, layers, vocabulary;
  std::string options;  // of the backbone
  std::string backbone = "gla";
};

std::int64_t count(const Sizes& sizes, const std::string& encoding, const std::string& encoding_options = "{}",
                   bool with_frozen = true) {
  ModelOptions model;
  model.dim = sizes.dim;
  model.layers = sizes.layers;
  const BackbonePlugin* backbone = plugins().find_backbone(sizes.backbone);
  const EncodingPlugin* chosen = plugins().find_encoding(encoding);
  if (backbone == nullptr || chosen == nullptr) throw std::runtime_error("a plugin is missing");
  const auto backbone_made = options_of(*backbone, sizes.options);
  const auto encoding_made = options_of(*chosen, encoding_options);
  ParameterStore store;
  const Model made(model, DataShape(sizes.vocabulary), {backbone, backbone_made.get(), chosen, encoding_made.get()}, store);
  return store.total(with_frozen);
}

/// What Selective RoPE adds.
std::int64_t added(const Sizes& sizes, const std::string& options) {
  return count(sizes, "selective_rope", options) - count(sizes, "nope");
}

const std::string full_rank = R"({"projection": {"kind": "full_rank"}, "time_mixing": {"activation": "silu"},
                                  "gate": {"kind": "standard"}})";
std::string low_rank(int rank, const std::string& more = "") {
  return R"({"projection": {"kind": "low_rank", "rank": )" + std::to_string(rank) + "}" + more + "}";
}
const std::string with_gate = R"(, "gate": {"kind": "standard"})";
const std::string with_bias = R"(, "bias": true)";

TEST(ParameterCounts, Gla370M) {
  const Sizes gla{1024, 24, 32000, R"({"heads": 4, "expand_k": 0.5, "expand_v": 1.0, "short_conv": 4})"};
  EXPECT_EQ(count(gla, "nope"), 374'672'384);
  EXPECT_EQ(added(gla, full_rank), 1'697'472);
  EXPECT_EQ(added(gla, low_rank(16, with_gate)), 616'032);
  EXPECT_EQ(added(gla, low_rank(8, with_gate)), 370'272);
  EXPECT_EQ(added(gla, low_rank(32)), 1'009'152);
  EXPECT_EQ(count(gla, "selective_rope", full_rank) - count(gla, "selective_rope", full_rank, false), 24 * 64);
}

TEST(ParameterCounts, Gla1300M) {
  const auto gla = [](int heads, int conv) {
    return Sizes{2048, 24, 32000,
                 R"({"heads": )" + std::to_string(heads) + R"(, "short_conv": )" + std::to_string(conv) + "}"};
  };
  EXPECT_EQ(count(gla(4, 4), "nope"), 1'365'907'456);
  EXPECT_EQ(count(gla(16, 4), "nope"), 1'365'898'240);
  EXPECT_EQ(count(gla(4, 0), "nope"), 1'365'514'240);
  EXPECT_NEAR(static_cast<double>(added(gla(16, 4), low_rank(32))), 2.0e6, 0.1e6);
  EXPECT_NEAR(static_cast<double>(added(gla(4, 4), full_rank)), 6.5e6, 0.05e6);
  EXPECT_NEAR(static_cast<double>(added(gla(16, 4), full_rank)), 2.4e6, 0.05e6);
}

TEST(ParameterCounts, Transformer370M) {
  const Sizes transformer{1024, 24, 32000, R"({"heads": 16})", "transformer"};
  EXPECT_EQ(count(transformer, "nope"), 373'867'520);
  EXPECT_EQ(count(transformer, "rope"), 373'867'520);
  EXPECT_EQ(added(transformer, full_rank), 1'230'336);
}

TEST(ParameterCounts, GatedDeltaNet400M) {
  const Sizes delta{1024, 24, 32000, R"({"heads": 8})", "gated_deltanet"};
  EXPECT_EQ(count(delta, "nope"), 399'724'928);
  EXPECT_EQ(count(delta, "rope"), 399'724'928);
  EXPECT_EQ(added(delta, full_rank), 1'820'544);
}

TEST(ParameterCounts, Copying) {
  const Sizes gla{512, 4, 30, R"({"heads": 16, "expand_k": 1.0, "expand_v": 1.0})"};
  const std::string skip_conv = R"(, "time_mixing": {"kind": "difference"})";
  EXPECT_EQ(count(gla, "nope"), 14'783'104);
  EXPECT_EQ(added(gla, low_rank(32, skip_conv)), 98'368);
  EXPECT_EQ(added(gla, low_rank(32, skip_conv + with_gate + with_bias)), 132'224);
}

TEST(ParameterCounts, Parity) {
  const Sizes plain{384, 1, 9, R"({"heads": 12, "expand_k": 1.0, "expand_v": 1.0})"};
  const Sizes conv{384, 1, 9, R"({"heads": 12, "expand_k": 1.0, "expand_v": 1.0, "short_conv": 4})"};
  EXPECT_EQ(count(plain, "nope"), 1'937'696);
  EXPECT_EQ(count(conv, "nope"), 1'942'304);
  EXPECT_EQ(added(conv, low_rank(32, with_bias)), 19'408);
}

TEST(ParameterCounts, Mad) {
  const Sizes gla{128, 1, 16, R"({"heads": 8, "expand_k": 1.0, "expand_v": 1.0})"};
  EXPECT_EQ(added(gla, low_rank(32)), 6'408);
  EXPECT_EQ(added(gla, low_rank(32, with_gate)), 7'440);
  EXPECT_EQ(added(gla, low_rank(32, with_bias)), 6'472);
  EXPECT_EQ(added(gla, low_rank(32, with_gate + with_bias)), 7'504);
  EXPECT_EQ(added(gla, R"({"projection": {"kind": "full_rank"}})"), 1'296);
}

}  // namespace
}  // namespace phasor
