// Gated linear attention (Yang et al. 2024; layers.md 5.2): a matrix state per head that decays by a gate per key channel.
// With one gate per plane (i, i + K/2) the decay commutes with rotations of the planes: queries and keys that an encoding turns
// by a running angle are then exactly a state that is turned and decays (paper notes 4.6); with a gate per channel they are not.

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/nn/mixer.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/gated_rms_norm/gated_rms_norm.h"
#include "core/ops/gla/gla.h"
#include "core/ops/l2_norm/l2_norm.h"
#include "core/ops/linear/linear.h"
#include "core/ops/repeat/repeat.h"
#include "core/ops/rms_norm/rms_norm.h"
#include "core/plugin/manifest.h"
#include "plugins/backbones/heads.h"

namespace {

using namespace phasor;

class Gla final : public Mixer {
 public:
  struct Options {
    std::int64_t heads = 4;
    std::optional<std::int64_t> kv_heads;
    double expand_k = 0.5, expand_v = 1.0;
    std::int64_t short_conv = 0;
    std::int64_t gate_rank = 16;
    double gate_divisor = 16.0;
    std::string gate_per = "channel";
    std::optional<double> gate_clamp;
    bool norm_q = false, norm_k = false;
    std::string feature_map = "none";
    bool output_gate = true, norm_affine = true;

    void fields(FieldList& f) {
      f.integer("heads", heads, "query heads", Range::at_least(1));
      f.integer("kv_heads", kv_heads, "key and value heads; not set: as many as heads", Range::at_least(1));
      f.number("expand_k", expand_k, "width of all keys, as a multiple of dim", Range::above(0.0));
      f.number("expand_v", expand_v, "width of all values, as a multiple of dim", Range::above(0.0));
      f.integer("short_conv", short_conv, "taps of the causal convolution (with SiLU) on q, k and v; 0 = none",
                Range::between(0, 64));
      f.integer("gate_rank", gate_rank, "rank of the forget gate's projection", Range::at_least(1));
      f.number("gate_divisor", gate_divisor, "the log-gate is logsigmoid(..) divided by this", Range::above(0.0));
      f.choice("gate_per", gate_per, {"channel", "plane", "head"},
               "what has a forget gate of its own: a key channel; a plane (i, i + K/2), as rotations turn them; a head");
      f.number("gate_clamp", gate_clamp, "lowest log-gate; not set: none", {.high = 0.0});
      f.boolean("norm_q", norm_q, "L2-normalise queries after the encoding");
      f.boolean("norm_k", norm_k, "L2-normalise keys after the encoding");
      f.choice("feature_map", feature_map, {"none", "relu", "elu"}, "map of queries and keys after the norms; elu is elu + 1");
      f.boolean("output_gate", output_gate, "multiply the normed output by silu of a projection of the input");
      f.boolean("norm_affine", norm_affine, "the output norm has a weight");
    }
  };

  static std::optional<std::string> refuses(const Options& o, std::int64_t dim) {
    const MixerShape s = shape(o, dim);
    if (o.heads % s.kv_heads != 0)
      return "heads " + std::to_string(o.heads) + " is not a multiple of kv_heads " + std::to_string(s.kv_heads);
    if (auto reason = backbones::uneven_heads("expand_k", dim, o.expand_k, o.heads)) return reason;
    if (auto reason = backbones::uneven_heads("expand_v", dim, o.expand_v, o.heads)) return reason;
    if (o.gate_per == "plane" && s.key_dim % 2 != 0)
      return "gate_per plane needs an even width per key head, found " + std::to_string(s.key_dim);
    return std::nullopt;
  }

  static MixerShape shape(const Options& o, std::int64_t dim) {
    return {dim, o.heads, o.kv_heads.value_or(o.heads), backbones::head_width(dim, o.expand_k, o.heads),
            backbones::head_width(dim, o.expand_v, o.heads)};
  }

  static Hook offers(const Options&) { return Hook::input | Hook::query_key; }

  Gla(const Options& options, std::int64_t dim, double norm_eps, const ParameterScope& scope)
      : o_(options), s_(shape(options, dim)), eps_(norm_eps) {
    const std::int64_t keys = s_.heads * s_.key_dim, values = s_.heads * s_.value_dim;
    const std::int64_t kv_keys = s_.kv_heads * s_.key_dim, kv_values = s_.kv_heads * s_.value_dim;
    // One matrix product for everything that reads x: the matrices stand side by side in memory.
    std::vector<Parameter> rows = {scope.weight("q_proj.weight", keys, dim), scope.weight("k_proj.weight", kv_keys, dim),
                                   scope.weight("v_proj.weight", kv_values, dim),
                                   scope.weight("gk_proj.0.weight", o_.gate_rank, dim)};
    widths_ = {keys, kv_keys, kv_values, o_.gate_rank};
    if (o_.output_gate) {
      rows.push_back(scope.weight("g_proj.weight", values, dim));
      widths_.push_back(values);
    }
    inputs_ = ParameterStore::stack(rows);
    const std::int64_t gates = s_.kv_heads * gates_per_head();
    gate_ = scope.weight("gk_proj.1.weight", gates, o_.gate_rank);
    gate_bias_ = scope.zeros("gk_proj.1.bias", {gates});
    if (o_.short_conv > 0) {
      q_conv_ = scope.weight("q_conv1d.weight", keys, o_.short_conv);
      k_conv_ = scope.weight("k_conv1d.weight", kv_keys, o_.short_conv);
      v_conv_ = scope.weight("v_conv1d.weight", kv_values, o_.short_conv);
    }
    if (o_.norm_affine) norm_ = scope.ones("g_norm.weight", {s_.value_dim});
    output_ = scope.weight("o_proj.weight", dim, values);
  }

  Tensor forward(Tape& tape, const Tensor& input, const Encoding& encoding, const SequenceContext& context,
                 State* state) const override {
    const Tensor x = contains(encoding.hook(), Hook::input) ? encoding.on_input(tape, input, context, state) : input;
    auto parts = tape.split(ops::linear(tape, x, inputs_(), {}), widths_);
    if (o_.short_conv > 0) {
      parts[0] = backbones::carried_conv(tape, parts[0], q_conv_(), {}, true, "q_conv", context, state);
      parts[1] = backbones::carried_conv(tape, parts[1], k_conv_(), {}, true, "k_conv", context, state);
      parts[2] = backbones::carried_conv(tape, parts[2], v_conv_(), {}, true, "v_conv", context, state);
    }
    QueryKey qk{backbones::split_heads(parts[0], s_.heads), backbones::split_heads(parts[1], s_.kv_heads)};
    if (contains(encoding.hook(), Hook::query_key)) qk = encoding.on_query_key(tape, qk, x, context, state);
    qk.q = mapped(tape, o_.norm_q ? ops::l2_norm(tape, qk.q, 1e-6) : qk.q);
    qk.k = mapped(tape, o_.norm_k ? ops::l2_norm(tape, qk.k, 1e-6) : qk.k);

    const Tensor logits = backbones::split_heads(ops::linear(tape, parts[3], gate_(), gate_bias_()), s_.kv_heads);
    Tensor log_gate = ops::log_gate(tape, logits, 1.0 / o_.gate_divisor, o_.gate_clamp);
    context.show("log_decay", log_gate);
    if (o_.gate_per != "channel") log_gate = ops::repeat(tape, log_gate, s_.key_dim / gates_per_head());
    const double scale = 1.0 / std::sqrt(static_cast<double>(s_.key_dim));
    const auto mixed = ops::gla(tape, qk.q, qk.k, backbones::split_heads(parts[2], s_.kv_heads), log_gate, scale,
                                state == nullptr ? Tensor() : state->get("s"), state != nullptr, 0, context.starts);
    if (state != nullptr) state->set("s", mixed.state);

    const Tensor normed =
        o_.output_gate ? ops::gated_rms_norm(tape, mixed.o, backbones::split_heads(parts[4], s_.heads), norm_(), eps_,
                                             ops::GateKind::silu, ops::GateOrder::norm_first)
                       : ops::rms_norm(tape, mixed.o, norm_(), eps_);
    return ops::linear(tape, backbones::join_heads(normed), output_(), {});
  }

 private:
  std::int64_t gates_per_head() const {
    if (o_.gate_per == "head") return 1;
    return o_.gate_per == "plane" ? s_.key_dim / 2 : s_.key_dim;
  }

  Tensor mapped(Tape& tape, const Tensor& x) const {
    if (o_.feature_map == "relu") return ops::relu(tape, x);
    if (o_.feature_map == "elu") return ops::elu_plus_one(tape, x);
    return x;
  }

  Options o_;
  MixerShape s_;
  double eps_;
  std::vector<std::int64_t> widths_;
  Parameter inputs_, gate_, gate_bias_, q_conv_, k_conv_, v_conv_, norm_, output_;
};

void register_all(Registry& registry) {
  registry.backbone<Gla>("gla", 1, "gated linear attention: matrix state with a forget gate per key channel");
}

}  // namespace

PHASOR_PLUGIN("gla", "1.0", register_all)
