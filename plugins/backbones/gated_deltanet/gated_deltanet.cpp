// Gated DeltaNet (Yang et al. 2025; layers.md 5.7): the delta rule on a state that decays, by one factor per head and
// step.

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/nn/mixer.h"
#include "core/ops/decay_gate/decay_gate.h"
#include "core/ops/delta_rule/delta_rule.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/gated_rms_norm/gated_rms_norm.h"
#include "core/ops/l2_norm/l2_norm.h"
#include "core/ops/linear/linear.h"
#include "core/ops/rms_norm/rms_norm.h"
#include "core/plugin/manifest.h"
#include "plugins/backbones/heads.h"

namespace {

using namespace phasor;

class GatedDeltaNet final : public Mixer {
 public:
  struct Options {
    std::int64_t heads = 4;
    std::optional<std::int64_t> value_heads;
    double expand_k = 1.0, expand_v = 1.0;
    std::int64_t short_conv = 4;
    bool negative_eigenvalues = false, output_gate = true, norm_affine = true;

    std::int64_t values() const { return value_heads.value_or(heads); }

    void fields(FieldList& f) {
      f.integer("heads", heads, "query and key heads", Range::at_least(1));
      f.integer("value_heads", value_heads, "value heads, each with a state; not set: as many as heads",
                Range::at_least(1));
      f.number("expand_k", expand_k, "width of all keys, as a multiple of dim", Range::above(0.0));
      f.number("expand_v", expand_v, "width of all values, as a multiple of dim", Range::above(0.0));
      f.integer("short_conv", short_conv, "taps of the causal convolution (with SiLU) on q, k and v; 0 = SiLU alone",
                Range::between(0, 64));
      f.boolean("negative_eigenvalues", negative_eigenvalues, "the step is twice the sigmoid, up to 2");
      f.boolean("output_gate", output_gate, "multiply the normed output by silu of a projection of the input");
      f.boolean("norm_affine", norm_affine, "the output norm has a weight");
    }
  };

  static std::optional<std::string> refuses(const Options& o, std::int64_t dim) {
    if (o.values() % o.heads != 0)
      return "value_heads " + std::to_string(o.values()) + " is not a multiple of heads " + std::to_string(o.heads);
    if (auto reason = backbones::uneven_heads("expand_k", dim, o.expand_k, o.heads)) return reason;
    return backbones::uneven_heads("expand_v", dim, o.expand_v, o.values());
  }

  static MixerShape shape(const Options& o, std::int64_t dim) {
    return {dim, o.heads, o.heads, backbones::head_width(dim, o.expand_k, o.heads),
            backbones::head_width(dim, o.expand_v, o.values())};
  }

  static Hook offers(const Options&) { return Hook::input | Hook::query_key; }

  GatedDeltaNet(const Options& options, std::int64_t dim, double norm_eps, const ParameterScope& scope)
      : o_(options), s_(shape(options, dim)), eps_(norm_eps) {
    const std::int64_t keys = s_.heads * s_.key_dim, values = o_.values() * s_.value_dim;
    // One matrix product for everything that reads x: the matrices stand side by side in memory.
    std::vector<Parameter> rows = {scope.weight("q_proj.weight", keys, dim), scope.weight("k_proj.weight", keys, dim),
                                   scope.weight("v_proj.weight", values, dim),
                                   scope.weight("a_proj.weight", o_.values(), dim),
                                   scope.weight("b_proj.weight", o_.values(), dim)};
    widths_ = {keys, keys, values, o_.values(), o_.values()};
    if (o_.output_gate) {
      rows.push_back(scope.weight("g_proj.weight", values, dim));
      widths_.push_back(values);
    }
    inputs_ = ParameterStore::stack(rows);
    log_rate_ = scope.add("A_log", {o_.values()}, Init::log_of_uniform(0.0, 16.0));
    step_bias_ = scope.add("dt_bias", {o_.values()}, Init::inverse_softplus(1e-3, 1e-1));
    if (o_.short_conv > 0) {
      q_conv_ = scope.weight("q_conv1d.weight", keys, o_.short_conv);
      k_conv_ = scope.weight("k_conv1d.weight", keys, o_.short_conv);
      v_conv_ = scope.weight("v_conv1d.weight", values, o_.short_conv);
    }
    if (o_.norm_affine) norm_ = scope.ones("o_norm.weight", {s_.value_dim});
    output_ = scope.weight("o_proj.weight", dim, values);
  }

  Tensor forward(Tape& tape, const Tensor& input, const Encoding& encoding, const SequenceContext& context,
                 State* state) const override {
    const Tensor x = contains(encoding.hook(), Hook::input) ? encoding.on_input(tape, input, context, state) : input;
    const auto parts = tape.split(ops::linear(tape, x, inputs_(), {}), widths_);
    const auto steps = [&](const Tensor& t) { return t.reshape({x.size(0), x.size(1), o_.values()}); };
    const auto heads = [&](const Tensor& t, const Parameter& conv, const char* name, std::int64_t count) {
      return backbones::split_heads(convolve(tape, t, conv, name, context, state), count);
    };
    QueryKey qk{heads(parts[0], q_conv_, "q_conv", s_.heads), heads(parts[1], k_conv_, "k_conv", s_.heads)};
    const Tensor v = heads(parts[2], v_conv_, "v_conv", o_.values());
    if (contains(encoding.hook(), Hook::query_key)) qk = encoding.on_query_key(tape, qk, x, context, state);
    qk = {ops::l2_norm(tape, qk.q, 1e-6), ops::l2_norm(tape, qk.k, 1e-6)};

    const Tensor log_decay = ops::decay_gate(tape, steps(parts[3]), step_bias_(), log_rate_());
    Tensor beta = ops::sigmoid(tape, steps(parts[4]));
    if (o_.negative_eigenvalues) beta = ops::scale(tape, beta, 2.0);
    context.show("log_decay", log_decay);
    context.show("write_gate", beta);
    const double scale = 1.0 / std::sqrt(static_cast<double>(s_.key_dim));
    const auto mixed =
        ops::delta_rule(tape, qk.q, qk.k, v, beta, log_decay, scale, state == nullptr ? Tensor() : state->get("s"),
                        state != nullptr, 0, context.starts);
    if (state != nullptr) state->set("s", mixed.state);

    const Tensor normed =
        o_.output_gate ? ops::gated_rms_norm(tape, mixed.o, backbones::split_heads(parts[5], o_.values()), norm_(), eps_,
                                             ops::GateKind::silu, ops::GateOrder::norm_first)
                       : ops::rms_norm(tape, mixed.o, norm_(), eps_);
    return ops::linear(tape, backbones::join_heads(normed), output_(), {});
  }

 private:
  /// The convolution with its activation, or the activation alone.
  Tensor convolve(Tape& tape, const Tensor& x, const Parameter& weight, const char* name,
                  const SequenceContext& context, State* state) const {
    if (o_.short_conv == 0) return ops::silu(tape, x);
    return backbones::carried_conv(tape, x, weight(), {}, true, name, context, state);
  }

  Options o_;
  MixerShape s_;
  double eps_;
  std::vector<std::int64_t> widths_;
  Parameter inputs_, log_rate_, step_bias_, q_conv_, k_conv_, v_conv_, norm_, output_;
};

void register_all(Registry& registry) {
  registry.backbone<GatedDeltaNet>("gated_deltanet", 1, "delta rule with a forget gate per head");
}

}  // namespace

PHASOR_PLUGIN("gated_deltanet", "1.0", register_all)
