// What users of attention caches and unusual head widths have suffered, asked of whole models.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/conformance/layers.h"

namespace phasor {
namespace {

using Offsets = std::map<const Encoding*, std::vector<std::int64_t>>;

/// Another encoding, which writes down the offset of every piece it sees.
class Recorder final : public Encoding {
 public:
  Recorder(std::unique_ptr<Encoding> inner, Offsets& offsets) : inner_(std::move(inner)), offsets_(&offsets) {}
  Hook hook() const override { return inner_->hook(); }
  QueryKey on_query_key(Tape& tape, QueryKey qk, const Tensor& x, const SequenceContext& context,
                        State* state) const override {
    (*offsets_)[this].push_back(context.offset);
    return inner_->on_query_key(tape, qk, x, context, state);
  }

 private:
  std::unique_ptr<Encoding> inner_;
  Offsets* offsets_;
};

class RecorderPlugin final : public EncodingPlugin {
 public:
  RecorderPlugin(const EncodingPlugin& inner, Offsets& offsets) : inner_(inner), offsets_(offsets) { info = inner.info; }
  std::unique_ptr<Options> options() const override { return inner_.options(); }
  std::optional<std::string> refuses(const Options& o, const MixerShape& shape) const override {
    return inner_.refuses(o, shape);
  }
  std::unique_ptr<Encoding> make(const Options& o, const MixerShape& shape, const ParameterScope& scope) const override {
    return std::make_unique<Recorder>(inner_.make(o, shape, scope), offsets_);
  }

 private:
  const EncodingPlugin& inner_;
  Offsets& offsets_;
};

/// A transformer of four layers with its values.
struct Decoder {
  std::unique_ptr<Options> backbone, encoding;
  ParameterStore store;
  Arena arena;
  std::unique_ptr<Model> model;

  Decoder(const EncodingPlugin& plugin, const std::string& backbone_options) {
    const BackbonePlugin& transformer = *plugins().find_backbone("transformer");
    backbone = options_of(transformer.options(), backbone_options);
    encoding = options_of(plugin.options(), "{}");
    ModelOptions options;
    options.dim = 32;
    options.layers = 4;
    options.init_std = 0.1;
    options.mlp.width = 32;
    model = std::make_unique<Model>(options, DataShape(50), MixerChoice{&transformer, backbone.get(), &plugin, encoding.get()},
                                    store);
    store.allocate(Dtype::f32);
    store.initialise(3);
  }

  std::vector<float> logits(const std::vector<std::int32_t>& ids, const SequenceContext& context,
                            std::vector<State>* states = nullptr) {
    Tape tape(arena, {Dtype::f32, nullptr}, false);
    const Tensor input = tape.empty({1, static_cast<std::int64_t>(ids.size())}, Dtype::i32);
    std::copy(ids.begin(), ids.end(), input.as<std::int32_t>());
    const Tensor out = model->head(tape, model->hidden(tape, input, context, states));
    return {out.as<float>(), out.as<float>() + out.size()};
  }
};

std::vector<std::int32_t> some_ids(std::size_t count) {
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < count; ++i) ids.push_back(static_cast<std::int32_t>((i * 17 + i * i) % 50));
  return ids;
}

TEST(Transformer, EveryLayerSeesTheSameOffsets) {
  constexpr std::size_t prefix = 17, time = 22;
  Offsets offsets;
  const RecorderPlugin plugin(*plugins().find_encoding("rope"), offsets);
  Decoder built(plugin, R"({"heads": 4})");
  const std::vector<std::int32_t> ids = some_ids(time);
  for (const std::int64_t begin : {std::int64_t{0}, std::int64_t{1000}}) {
    const std::vector<float> whole = built.logits(ids, {begin, false});
    offsets.clear();
    std::vector<State> states(4);
    std::vector<float> pieces = built.logits({ids.begin(), ids.begin() + prefix}, {begin, false}, &states);
    for (std::size_t t = prefix; t < time; ++t)
      for (const float logit : built.logits({ids[t]}, {begin + static_cast<std::int64_t>(t), false}, &states))
        pieces.push_back(logit);
    ASSERT_EQ(pieces.size(), whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(pieces[i], whole[i], 1e-5f) << i;
    ASSERT_EQ(offsets.size(), 4U);
    for (const auto& [layer, seen] : offsets)
      EXPECT_EQ(seen, (std::vector<std::int64_t>{begin, begin + 17, begin + 18, begin + 19, begin + 20, begin + 21}));
  }
}

TEST(Transformer, AWindowKeepsOnlyWhatLaterTokensSee) {
  Decoder built(*plugins().find_encoding("alibi"), R"({"heads": 4, "window": 5})");
  std::vector<State> states(4);
  for (std::int64_t t = 0; t < 12; ++t) {
    built.logits({static_cast<std::int32_t>(t)}, {t, false}, &states);
    for (const State& state : states)
      for (const char* name : {"k_cache", "v_cache"})
        EXPECT_EQ(state.get(name).shape(), (Shape{1, std::min<std::int64_t>(t + 1, 4), 4, 8})) << t;
  }
}

std::optional<Misfit> misfit(std::int64_t dim, const std::string& options, const std::string& encoding) {
  return misfit_of({"", "transformer", options, encoding, "{}"}, dim);
}

TEST(Transformer, AnyHeadWidthOrAReason) {
  for (const std::int64_t width : {1, 4, 8, 16, 24, 80, 128, 256, 257, 512}) {
    EXPECT_FALSE(misfit(2 * width, R"({"heads": 2})", "nope")) << width;
    const auto rope = misfit(2 * width, R"({"heads": 2})", "rope");
    EXPECT_EQ(rope.has_value(), width % 2 == 1) << width;
    if (rope) {
      EXPECT_NE(rope->reason.find("rope does not fit"), std::string::npos) << rope->reason;
    }
  }
  EXPECT_NE(misfit(130, R"({"heads": 4})", "nope")->reason.find("heads: found 4, expected a divisor of dim 130"),
            std::string::npos);
  EXPECT_NE(misfit(128, R"({"heads": 4, "kv_heads": 3})", "nope")->reason.find("not a multiple of kv_heads 3"),
            std::string::npos);
  EXPECT_NE(misfit(128, R"({"heads": 4, "kv_heads": 2})", "selective_rope")->reason.find("as many key heads"),
            std::string::npos);
}

}  // namespace
}  // namespace phasor
