// Linear attention (Katharopoulos et al. 2020; layers.md 5.1): a matrix state per head that sums up outer products of
// mapped keys and values. What distinguishes its relatives is the feature map.

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/nn/mixer.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/feature_map/feature_map.h"
#include "core/ops/l2_norm/l2_norm.h"
#include "core/ops/linear/linear.h"
#include "core/ops/linear_attention/linear_attention.h"
#include "core/ops/rms_norm/rms_norm.h"
#include "core/ops/shared_head_linear/shared_head_linear.h"
#include "core/ops/sum_norm/sum_norm.h"
#include "core/plugin/manifest.h"
#include "plugins/backbones/heads.h"

namespace {

using namespace phasor;

struct FeatureMapOptions {
  std::string kind = "elementwise_product";
  bool tied = false;
  std::int64_t features = 64;
  std::optional<std::int64_t> max_length;

  void fields(FieldList& f) {
    f.choice("kind", kind, {"elementwise_product", "identity", "elu", "relu", "performer", "rfa", "cosformer"},
             "elementwise_product: of two learned linear maps; elu is elu + 1; performer: positive random features of the "
             "exponential; rfa: random Fourier features of the L2-normalised vector; cosformer: relu with cosine weights");
    f.boolean("tied", tied, "of elementwise_product: queries and keys share the two maps");
    f.integer("features", features, "random rows of performer and rfa (rfa has a sine and a cosine of each)",
              Range::between(1, 1 << 16));
    f.integer("max_length", max_length, "of cosformer: positions that its weights know", Range::at_least(1));
  }

  bool random() const { return kind == "performer" || kind == "rfa"; }
};

class LinearAttention final : public Mixer {
 public:
  struct Options {
    std::int64_t heads = 4;
    std::optional<std::int64_t> kv_heads;
    double expand_k = 1.0, expand_v = 1.0;
    FeatureMapOptions feature_map;
    bool norm_q = false, norm_k = false;
    std::optional<bool> normalise;
    bool gate = false;

    void fields(FieldList& f) {
      f.integer("heads", heads, "query heads", Range::at_least(1));
      f.integer("kv_heads", kv_heads, "key and value heads; not set: as many as heads", Range::at_least(1));
      f.number("expand_k", expand_k, "width of all keys, as a multiple of dim", Range::above(0.0));
      f.number("expand_v", expand_v, "width of all values, as a multiple of dim", Range::above(0.0));
      f.object("feature_map", feature_map, "map of queries and keys after the encoding");
      f.boolean("norm_q", norm_q, "divide mapped queries by their sum; elu, relu and performer only");
      f.boolean("norm_k", norm_k, "divide mapped keys by their sum; elu, relu and performer only");
      f.boolean("normalise", normalise,
                "divide outputs by the sum of the weights; not set: with performer, rfa and cosformer");
      f.boolean("gate", gate, "a forget gate per head and step (gated RFA), of the state and of the sum of the weights");
    }

    bool normalises() const { return normalise.value_or(feature_map.random() || feature_map.kind == "cosformer"); }
  };

  static std::optional<std::string> refuses(const Options& o, std::int64_t dim) {
    const MixerShape s = shape(o, dim);
    if (o.heads % s.kv_heads != 0)
      return "heads " + std::to_string(o.heads) + " is not a multiple of kv_heads " + std::to_string(s.kv_heads);
    if (auto reason = backbones::uneven_heads("expand_k", dim, o.expand_k, o.heads)) return reason;
    if (auto reason = backbones::uneven_heads("expand_v", dim, o.expand_v, o.heads)) return reason;
    const FeatureMapOptions& map = o.feature_map;
    const std::string norm = o.norm_q ? "norm_q" : "norm_k";
    if (o.norm_q || o.norm_k) {
      if (map.kind == "identity" || map.kind == "elementwise_product")
        return norm + ": the features of " + map.kind + " have both signs, so that their sum may vanish";
      if (map.kind == "rfa") return norm + ": rfa has a norm of its own, the L2 norm before the map";
      if (map.kind == "cosformer") return norm + ": it would undo the cosine weights of cosformer";
    }
    if (map.kind == "cosformer" && !map.max_length) return "feature_map.max_length: not set, but cosformer needs it";
    if (map.kind != "cosformer" && map.max_length) return "feature_map.max_length: " + map.kind + " has no such length";
    if (map.kind != "elementwise_product" && map.tied) return "feature_map.tied: " + map.kind + " has nothing to tie";
    return std::nullopt;
  }

  static MixerShape shape(const Options& o, std::int64_t dim) {
    return {dim, o.heads, o.kv_heads.value_or(o.heads), backbones::head_width(dim, o.expand_k, o.heads),
            backbones::head_width(dim, o.expand_v, o.heads)};
  }

  static Hook offers(const Options&) { return Hook::input | Hook::query_key; }

  LinearAttention(const Options& options, std::int64_t dim, double norm_eps, const ParameterScope& scope)
      : o_(options), s_(shape(options, dim)), eps_(norm_eps) {
    const std::int64_t keys = s_.heads * s_.key_dim, values = s_.heads * s_.value_dim;
    widths_ = {keys, s_.kv_heads * s_.key_dim, s_.kv_heads * s_.value_dim};
    // One matrix product for everything that reads x: the matrices stand side by side in memory.
    std::vector<Parameter> rows = {scope.weight("q_proj.weight", widths_[0], dim),
                                   scope.weight("k_proj.weight", widths_[1], dim),
                                   scope.weight("v_proj.weight", widths_[2], dim)};
    if (o_.gate) {
      rows.push_back(scope.weight("gate_proj.weight", s_.kv_heads, dim));
      widths_.push_back(s_.kv_heads);
    }
    inputs_ = ParameterStore::stack(rows);
    if (o_.gate) gate_bias_ = scope.zeros("gate_proj.bias", {s_.kv_heads});
    const FeatureMapOptions& map = o_.feature_map;
    if (map.kind == "elementwise_product") {
      q_map_ = make_product(scope.child(map.tied ? "feature_map" : "feature_map_q"));
      k_map_ = map.tied ? q_map_ : make_product(scope.child("feature_map_k"));
    }
    if (map.random())
      projection_ = scope.add("feature_map.projection", {map.features, s_.key_dim},
                              Init::normal(1.0), true);
    norm_ = scope.ones("norm.weight", {s_.value_dim});
    output_ = scope.weight("o_proj.weight", dim, values);
  }

  Tensor forward(Tape& tape, const Tensor& input, const Encoding& encoding, const SequenceContext& context,
                 State* state) const override {
    const Tensor x = contains(encoding.hook(), Hook::input) ? encoding.on_input(tape, input, context, state) : input;
    const auto parts = tape.split(ops::linear(tape, x, inputs_(), {}), widths_);
    QueryKey qk{backbones::split_heads(parts[0], s_.heads), backbones::split_heads(parts[1], s_.kv_heads)};
    if (contains(encoding.hook(), Hook::query_key)) qk = encoding.on_query_key(tape, qk, x, context, state);
    qk.q = mapped(tape, qk.q, q_map_, context);
    qk.k = mapped(tape, qk.k, k_map_, context);
    constexpr double sum_eps = 1e-4;
    if (o_.norm_q) qk.q = ops::sum_norm(tape, qk.q, sum_eps);
    if (o_.norm_k) qk.k = ops::sum_norm(tape, qk.k, sum_eps);

    Tensor log_decay;
    if (o_.gate) log_decay = ops::log_sigmoid(tape, ops::add_row(tape, parts[3], gate_bias_()));
    if (log_decay) context.show("log_decay", log_decay);
    const double scale = 1.0 / std::sqrt(static_cast<double>(s_.key_dim));  // of the width before the map
    const auto carried = [&](const char* name) { return state == nullptr ? Tensor() : state->get(name); };
    const auto mixed =
        ops::linear_attention(tape, qk.q, qk.k, backbones::split_heads(parts[2], s_.kv_heads), log_decay, scale,
                              o_.normalises(), carried("s"), carried("z"), state != nullptr, context.starts);
    if (state != nullptr) {
      state->set("s", mixed.state);
      if (mixed.sum) state->set("z", mixed.sum);
    }
    const Tensor normed = ops::rms_norm(tape, mixed.o, norm_(), eps_);
    return ops::linear(tape, backbones::join_heads(normed), output_(), {});
  }

 private:
  struct Product {
    std::array<Parameter, 2> weight, bias;  // [key_dim, key_dim], [key_dim]
  };

  Product make_product(const ParameterScope& scope) const {
    Product made;
    for (std::size_t i = 0; i < 2; ++i) {
      const ParameterScope layer = scope.child("layer" + std::to_string(i + 1));
      made.weight[i] = layer.weight("weight", s_.key_dim, s_.key_dim);
      made.bias[i] = layer.zeros("bias", {s_.key_dim});
    }
    return made;
  }

  Tensor mapped(Tape& tape, const Tensor& x, const Product& product, const SequenceContext& context) const {
    const std::string& kind = o_.feature_map.kind;
    if (kind == "elu") return ops::elu_plus_one(tape, x);
    if (kind == "relu") return ops::relu(tape, x);
    if (kind == "elementwise_product")
      return ops::mul(tape, ops::shared_head_linear(tape, x, product.weight[0](), product.bias[0]()),
                      ops::shared_head_linear(tape, x, product.weight[1](), product.bias[1]()));
    if (kind == "performer") {  // products of queries and keys are those of attention, with the factor K^(-1/2)
      const Tensor scaled = ops::scale(tape, x, 1.0 / std::sqrt(std::sqrt(static_cast<double>(s_.key_dim))));
      return ops::positive_features(tape, ops::shared_head_linear(tape, scaled, projection_(), {}), scaled);
    }
    if (kind == "rfa")
      return ops::fourier_features(tape, ops::shared_head_linear(tape, ops::l2_norm(tape, x, 1e-6), projection_(), {}));
    if (kind == "cosformer")
      return ops::cosine_features(tape, x, *o_.feature_map.max_length, context.offset, context.starts);
    return x;
  }

  Options o_;
  MixerShape s_;
  double eps_;
  std::vector<std::int64_t> widths_;
  Parameter inputs_, gate_bias_, projection_, norm_, output_;
  Product q_map_, k_map_;
};

void register_all(Registry& registry) {
  registry.backbone<LinearAttention>("linear_attention", 1,
                                     "linear attention: matrix state without decay, queries and keys through a feature map");
}

}  // namespace

PHASOR_PLUGIN("linear_attention", "1.0", register_all)
