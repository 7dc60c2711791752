#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/nn/model.h"
#include "core/ops/gemm.h"
#include "core/plugin/loader.h"
#include "core/spec/problems.h"

// Small models of every backbone and encoding, for tests of whole layers.

namespace phasor {

inline const Registry& plugins() {
  static const Registry* const registry = [] {
    auto* made = new Registry;
    load_plugins(*made, default_plugin_folder());
    use_one_thread_for_gemm();
    return made;
  }();
  return *registry;
}

inline std::unique_ptr<Options> options_of(std::unique_ptr<Options> options, const std::string& json) {
  Document document = Document::parse(json, "options");
  FieldList fields;
  options->fields(fields);
  read_fields(fields, document.value(), "", document, fields);
  document.require_none();
  return options;
}

struct Pair {
  std::string name, backbone, backbone_options, encoding, encoding_options;
};
inline void PrintTo(const Pair& pair, std::ostream* out) { *out << pair.name; }

constexpr std::int64_t width = 16;     // of the small models
constexpr std::int64_t longest = 138;  // tokens of the longest row

/// What their data are like.
inline DataShape small_data(std::int64_t vocabulary) {
  DataShape data(vocabulary);
  data.max_time = longest;
  return data;
}

/// Why the two do not go together, or nothing.
inline std::optional<Misfit> misfit_of(const Pair& pair, std::int64_t dim = width, const Registry& registry = plugins()) {
  const BackbonePlugin* backbone = registry.find_backbone(pair.backbone);
  const EncodingPlugin* encoding = registry.find_encoding(pair.encoding);
  const auto backbone_options = options_of(backbone->options(), pair.backbone_options);
  const auto encoding_options = options_of(encoding->options(), pair.encoding_options);
  ModelOptions options;
  options.dim = dim;
  return find_misfit(options, small_data(1), {backbone, backbone_options.get(), encoding, encoding_options.get()});
}

/// Names of plugins, each with options.
using Variants = std::vector<std::pair<std::string, std::string>>;

/// What is registered and is not among them is added, as it is by default.
template <class Plugins>
void add_others(Variants& variants, const Plugins& registered) {
  for (const auto& plugin : registered) {
    const std::string& name = plugin->info.name;
    if (std::none_of(variants.begin(), variants.end(), [&](const auto& known) { return known.first == name; }))
      variants.emplace_back(name, "{}");
  }
}

/// Every registered backbone with every registered encoding that fits it in a model of `width`. A plugin needs no line here;
/// the lines are options that tests would not meet otherwise.
inline std::vector<Pair> pairs(const Registry& registry = plugins()) {
  Variants backbones = {
      {"gla", R"({"heads": 2, "expand_k": 1.0, "gate_divisor": 1.0})"},
      {"gla", R"({"heads": 2, "expand_k": 1.0, "short_conv": 4, "norm_q": true, "norm_k": true})"},
      {"gla", R"({"heads": 2, "expand_k": 1.0, "gate_divisor": 1.0, "gate_per": "plane"})"},
      {"deltanet", R"({"heads": 2})"},
      {"deltanet", R"({"heads": 2, "expand_v": 2.0, "short_conv": 0, "activation": "elu", "qk_norm": "sum",
                       "negative_eigenvalues": true, "output_gate": true})"},
      {"gated_deltanet", R"({"heads": 2})"},
      {"gated_deltanet", R"({"heads": 2, "value_heads": 4, "expand_v": 2.0, "short_conv": 0, "negative_eigenvalues": true,
                             "output_gate": false})"},
      {"base_conv", "{}"},
      {"transformer", R"({"heads": 2})"},
      {"transformer", R"({"heads": 4, "kv_heads": 2, "qk_norm": true, "bias": true})"},
      {"transformer", R"({"heads": 2, "window": 9, "qk_norm": true, "output_bias": true})"},
      {"fox", R"({"heads": 2})"},
      {"fox", R"({"heads": 4, "kv_heads": 2, "qk_norm": true, "bias": true, "output_gate": true, "output_norm": true})"},
      {"fox", R"({"heads": 2, "window": 9, "output_gate": true})"},
      {"linear_attention", R"({"heads": 2})"},
      {"linear_attention", R"({"heads": 4, "kv_heads": 2, "feature_map": {"kind": "elu"}, "norm_q": true, "norm_k": true,
                               "normalise": true})"},
      {"linear_attention", R"({"heads": 2, "feature_map": {"kind": "performer", "features": 12}})"},
      {"linear_attention", R"({"heads": 2, "feature_map": {"kind": "rfa", "features": 48}, "gate": true})"},
      {"linear_attention", R"({"heads": 2, "feature_map": {"kind": "cosformer", "max_length": 138}})"},
      {"retnet", R"({"heads": 2, "expand_k": 2.0})"},
      {"retnet", R"({"heads": 2, "short_conv": 4})"}};
  Variants encodings = {
      {"nope", "{}"},
      {"rope", R"({"theta": 100.0})"},
      {"rope", R"({"theta": 100.0, "dim": 4, "layout": "interleaved", "scaling": {"kind": "ntk", "factor": 4}})"},
      {"selective_rope", R"({"projection": {"rank": 3}})"},
      {"selective_rope", R"({"projection": {"kind": "full_rank"}, "time_mixing": {"activation": "silu"}, "bias": true,
                             "gate": {"kind": "per_plane", "rank": 2}, "temperature": {"kind": "rfa", "theta": 0.9}})"},
      {"selective_rope", R"({"input": "q", "time_mixing": {"kind": "difference"}, "gate": {"kind": "standard"}})"},
      {"selective_rope", R"({"input_norm": "none", "time_mixing": {"kind": "identity"}, "increment": "softplus"})"},
      {"learned_absolute", R"({"length": 300})"},
      {"alibi", "{}"}};
  add_others(backbones, registry.backbones());
  add_others(encodings, registry.encodings());
  std::vector<Pair> all;
  for (std::size_t b = 0; b < backbones.size(); ++b)
    for (std::size_t e = 0; e < encodings.size(); ++e) {
      const Pair pair{fmt::format("{}{}_{}{}", backbones[b].first, b, encodings[e].first, e), backbones[b].first,
                      backbones[b].second, encodings[e].first, encodings[e].second};
      if (!misfit_of(pair, width, registry)) all.push_back(pair);
    }
  return all;
}

constexpr std::int64_t time_steps = 130;

/// A small model of a pair of plugins(). Where a test uses every id once, an id's gradient is its position's.
class Built {
 public:
  Built(const Pair& pair, Dtype dtype, double init_std = 0.3, std::int64_t layers = 2, std::int64_t dim = width,
        double norm_eps = 1e-6)
      : dtype_(dtype), backbone_(options_of(plugins().find_backbone(pair.backbone)->options(), pair.backbone_options)),
        encoding_(options_of(plugins().find_encoding(pair.encoding)->options(), pair.encoding_options)) {
    ModelOptions options;
    options.dim = dim;
    options.layers = layers;
    options.init_std = init_std;
    options.norm_eps = norm_eps;
    options.mlp.width = 8;
    const MixerChoice choice{plugins().find_backbone(pair.backbone), backbone_.get(), plugins().find_encoding(pair.encoding),
                             encoding_.get()};
    model_ = std::make_unique<Model>(options, small_data(vocabulary), choice, store_);
    store_.allocate(dtype);
    store_.initialise(11);
    gradients_ = Tensor(arena_, dtype, {store_.flat_size()});
  }

  static constexpr std::int64_t vocabulary = 1000;

  /// ids [batch * time]
  Tensor hidden(Tape& tape, const std::vector<std::int32_t>& ids, const SequenceContext& context,
                std::vector<State>* states, std::int64_t batch = 1) const {
    const Tensor input = tape.empty({batch, static_cast<std::int64_t>(ids.size()) / batch}, Dtype::i32);
    std::copy(ids.begin(), ids.end(), input.as<std::int32_t>());
    return model_->hidden(tape, input, context, states);
  }
  Tensor hidden(Tape& tape, const std::vector<std::int32_t>& ids, std::int64_t offset,
                std::vector<State>* states) const {
    SequenceContext context;
    context.offset = offset;
    return hidden(tape, ids, context, states);
  }
  std::vector<double> outputs(const std::vector<std::int32_t>& ids) {
    Tape tape(arena_, {dtype_, nullptr}, false);
    return values(hidden(tape, ids, 0, nullptr));
  }
  static std::vector<double> values(const Tensor& t) {
    std::vector<double> out;
    for (std::int64_t r = 0; r < t.rows(); ++r)
      for (std::int64_t i = 0; i < t.width(); ++i)
        out.push_back(t.dtype() == Dtype::f64 ? row<double>(t.view(), r)[i]
                                              : static_cast<double>(row<float>(t.view(), r)[i]));
    return out;
  }
  Dtype dtype() const { return dtype_; }
  std::int64_t layers() const { return model_->layers(); }
  Arena& arena() { return arena_; }
  const ParameterStore& store() const { return store_; }
  const Tensor& gradients() const { return gradients_; }

 private:
  Dtype dtype_;
  std::unique_ptr<Options> backbone_, encoding_;
  ParameterStore store_;
  Arena arena_;
  Tensor gradients_;
  std::unique_ptr<Model> model_;
};

inline std::vector<std::int32_t> ids_from(std::int64_t first, std::int64_t count) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(static_cast<std::int32_t>(first + i));
  return ids;
}

}  // namespace phasor
