#include "tests/golden/plugins.h"

#include <string>

#include "core/base/error.h"
#include "core/plugin/loader.h"
#include "core/spec/problems.h"

namespace phasor::golden {

namespace {

/// A bad file counts only when something of it is wanted; then its problem is the reason.
struct Loaded {
  Registry registry;
  std::string problems;

  Loaded() {
    for (const PluginFile& file : load_plugins(registry, default_plugin_folder()))
      if (!file.problem.empty()) problems += "; " + file.problem;
  }
};

const Loaded& loaded() {
  static const Loaded plugins;
  return plugins;
}

template <class Choice, class Plugin>
Choice choose(const Plugin* plugin, const Json& options, const std::string& name) {
  if (plugin == nullptr)
    throw UserError("plugin " + name + " is not in " + default_plugin_folder() + loaded().problems);
  Choice choice{plugin, plugin->options()};
  read_options(*choice.options, options, name);
  return choice;
}

const std::string& text(const Json& options, std::string_view key) { return options.find(key)->as_string(); }
bool flag(const Json& options, std::string_view key) { return options.find(key)->as_bool(); }

Json projection_of(const Json& from) {
  const std::string& kind = text(from, "phi_parametrization");
  Json out = Json::object();
  out["kind"] = kind == "low-rank" ? "low_rank" : (kind == "full-rank" ? "full_rank" : "none");
  if (kind == "low-rank") out["rank"] = *from.find("phi_proj_rank");
  // The narrower unit has no such option: there the kind decides, as in our default.
  if (const Json* norm = from.find("weight_norm"); norm != nullptr && kind != "none") out["weight_norm"] = *norm;
  return out;
}

Json time_mixing_of(const Json& from) {
  const Json* wide = from.find("time_mixing");
  Json out = Json::object();
  out["kind"] = wide != nullptr ? wide->as_string() : (flag(from, "skip_conv") ? "difference" : "conv");
  if (out.find("kind")->as_string() == "conv") {
    out["width"] = *from.find("d_conv");
    out["activation"] = from.find("conv_act")->is_null() ? "none" : "silu";
  }
  return out;
}

Json gate_of(const Json& from) {
  Json out = Json::object();
  if (!flag(from, "use_gate")) {
    out["kind"] = "none";
    return out;
  }
  const std::string& kind = text(from, "gate_parametrization");
  out["kind"] = kind == "standard" ? "standard" : (kind == "low-rank" ? "low_rank" : "per_plane");
  if (kind != "standard") out["rank"] = *from.find("gate_low_rank_dim");
  return out;
}

Json feature_map_of(const Json& from) {
  if (from.is_null() || from.as_string() == "identity") return "none";
  return from.as_string() == "elu1" ? Json("elu") : from;
}

/// A width as a multiple of the model's.
double share(const Json& from, std::string_view width) {
  return from.find(width)->as_number() / from.find("hidden_size")->as_number();
}

Json temperature_of(const Json& from) {
  Json out = Json::object();
  out["kind"] = *from.find("temp_type");
  out["theta"] = *from.find("temp_theta");
  out["max"] = *from.find("temp_max");
  out["learned"] = *from.find("temp_grad");
  return out;
}

Json scaling_of(const Json& from) {
  Json out = Json::object();
  for (const char* same : {"kind", "factor", "trained_length", "alpha", "beta"})
    if (const Json* value = from.find(same)) out[same] = *value;
  return out;
}

}  // namespace

const Registry& plugins() { return loaded().registry; }

void read_options(Options& options, const Json& json, const std::string& name) {
  FieldList fields;
  options.fields(fields);
  Document document = Document::parse(json.pretty(), name);
  read_fields(fields, document.value(), "", document, fields);
  document.require_none();
}

EncodingChoice choose_selective_rope(const Json& from) {
  Json options = Json::object();
  for (const char* same : {"input", "input_norm", "increment"})
    if (const Json* value = from.find(same)) options[same] = *value;
  options["projection"] = projection_of(from);
  options["time_mixing"] = time_mixing_of(from);
  options["bias"] = flag(from, "use_bias");
  options["gate"] = gate_of(from);
  options["temperature"] = temperature_of(from);
  return choose<EncodingChoice>(plugins().find_encoding("selective_rope"), options, "selective_rope");
}

EncodingChoice choose_encoding(const Json& from) {
  const std::string& type = text(from, "type");
  if (type == "selective_rope") return choose_selective_rope(from);
  Json options = Json::object();
  if (type == "rope") {
    for (const char* same : {"theta", "dim", "offset"})
      if (const Json* value = from.find(same)) options[same] = *value;
    if (const Json* pairs = from.find("interleaved"))
      options["layout"] = pairs->as_bool() ? "interleaved" : "half_split";
    if (from.find("kind") != nullptr) options["scaling"] = scaling_of(from);
  }
  return choose<EncodingChoice>(plugins().find_encoding(type), options, type);
}

BackboneChoice choose_gla(const Json& from) {
  Json options = Json::object();
  options["heads"] = *from.find("num_heads");
  options["kv_heads"] = *from.find("num_kv_heads");
  options["expand_k"] = share(from, "key_dim");
  options["expand_v"] = share(from, "value_dim");
  options["short_conv"] = flag(from, "use_short_conv") ? from.find("conv_size")->as_integer() : std::int64_t{0};
  options["gate_rank"] = *from.find("gate_low_rank_dim");
  options["gate_divisor"] = *from.find("gate_logit_normalizer");
  options["gate_clamp"] = *from.find("clamp_min");
  options["norm_q"] = *from.find("norm_q");
  options["norm_k"] = *from.find("norm_k");
  options["feature_map"] = feature_map_of(*from.find("feature_map"));
  options["output_gate"] = *from.find("use_output_gate");
  options["norm_affine"] = *from.find("elementwise_affine");
  return choose<BackboneChoice>(plugins().find_backbone("gla"), options, "gla");
}

BackboneChoice choose_deltanet(const Json& from) {
  const auto share = [&](std::string_view width) {
    return from.find(width)->as_number() / from.find("hidden_size")->as_number();
  };
  const std::string& activation = text(from, "qk_activation");
  Json options = Json::object();
  options["heads"] = *from.find("num_heads");
  options["expand_k"] = share("key_dim");
  options["expand_v"] = share("value_dim");
  options["short_conv"] = flag(from, "use_short_conv") ? from.find("conv_size")->as_integer() : std::int64_t{0};
  options["conv_bias"] = *from.find("conv_bias");
  options["activation"] = activation == "identity" ? "none" : activation;
  options["qk_norm"] = *from.find("qk_norm");
  options["beta"] = *from.find("use_beta");
  options["negative_eigenvalues"] = *from.find("allow_neg_eigval");
  options["output_gate"] = *from.find("use_gate");
  return choose<BackboneChoice>(plugins().find_backbone("deltanet"), options, "deltanet");
}

BackboneChoice choose_gated_deltanet(const Json& from) {
  const double dim = from.find("hidden_size")->as_number();
  const auto share = [&](std::string_view heads, std::string_view width) {
    return from.find(heads)->as_number() * from.find(width)->as_number() / dim;
  };
  Json options = Json::object();
  options["heads"] = *from.find("num_heads");
  options["value_heads"] = *from.find("num_v_heads");
  options["expand_k"] = share("num_heads", "head_dim");
  options["expand_v"] = share("num_v_heads", "head_v_dim");
  options["short_conv"] = flag(from, "use_short_conv") ? from.find("conv_size")->as_integer() : std::int64_t{0};
  options["negative_eigenvalues"] = *from.find("allow_neg_eigval");
  options["output_gate"] = *from.find("use_gate");
  return choose<BackboneChoice>(plugins().find_backbone("gated_deltanet"), options, "gated_deltanet");
}

BackboneChoice choose_linear_attention(const Json& from) {
  Json options = Json::object(), map = Json::object();
  map["kind"] = *from.find("feature_map");
  options["heads"] = *from.find("num_heads");
  options["expand_k"] = share(from, "key_dim");
  options["expand_v"] = share(from, "value_dim");
  options["feature_map"] = map;
  options["norm_q"] = *from.find("norm_q");
  options["norm_k"] = *from.find("norm_k");
  options["normalise"] = *from.find("do_feature_map_norm");
  return choose<BackboneChoice>(plugins().find_backbone("linear_attention"), options, "linear_attention");
}

BackboneChoice choose_retnet(const Json& from) {
  Json options = Json::object();
  options["heads"] = *from.find("num_heads");
  options["expand_k"] = share(from, "key_dim");
  options["expand_v"] = share(from, "value_dim");
  return choose<BackboneChoice>(plugins().find_backbone("retnet"), options, "retnet");
}

EncodingChoice choose_fixed_encoding(const Json& from) {
  const Json* theta = from.find("rope_theta");
  Json encoding = Json::object();
  encoding["type"] = theta != nullptr ? "rope" : "nope";
  if (theta != nullptr) encoding["theta"] = *theta;
  return choose_encoding(encoding);
}

namespace {
Json softmax_options(const Json& from) {
  Json options = Json::object();
  options["heads"] = *from.find("num_heads");
  options["kv_heads"] = *from.find("num_kv_heads");
  options["bias"] = *from.find("qkv_bias");
  options["window"] = *from.find("window_size");
  options["qk_norm"] = *from.find("qk_norm");
  return options;
}
}  // namespace

BackboneChoice choose_fox(const Json& from) {
  Json options = softmax_options(from);
  options["output_gate"] = *from.find("use_output_gate");
  return choose<BackboneChoice>(plugins().find_backbone("fox"), options, "fox");
}

BackboneChoice choose_transformer(const Json& from) {
  const Json options = softmax_options(from);
  return choose<BackboneChoice>(plugins().find_backbone("transformer"), options, "transformer");
}

EncodingChoice choose_transformer_encoding(const Json& from) {
  const Json* alibi = from.find("alibi");  // layer_fox has no such option
  if (alibi == nullptr || !alibi->as_bool()) return choose_encoding(*from.find("position_embedding"));
  return choose<EncodingChoice>(plugins().find_encoding("alibi"), Json::object(), "alibi");
}

}  // namespace phasor::golden
