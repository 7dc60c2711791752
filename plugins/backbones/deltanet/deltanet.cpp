// DeltaNet (Yang et al. 2024; layers.md 5.6): a matrix state per head, written to by the delta rule.

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/nn/mixer.h"
#include "core/ops/delta_rule/delta_rule.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/gated_rms_norm/gated_rms_norm.h"
#include "core/ops/l2_norm/l2_norm.h"
#include "core/ops/linear/linear.h"
#include "core/ops/rms_norm/rms_norm.h"
#include "core/ops/sum_norm/sum_norm.h"
#include "core/plugin/manifest.h"
#include "plugins/backbones/heads.h"

namespace {

using namespace phasor;

class DeltaNet final : public Mixer {
 public:
  struct Options {
    std::int64_t heads = 4;
    double expand_k = 1.0, expand_v = 1.0;
    std::int64_t short_conv = 4;
    bool conv_bias = false;
    std::string activation = "silu", qk_norm = "l2";
    bool beta = true, negative_eigenvalues = false;
    bool output_gate = false, norm_affine = true;

    void fields(FieldList& f) {
      f.integer("heads", heads, "heads", Range::at_least(1));
      f.number("expand_k", expand_k, "width of all keys, as a multiple of dim", Range::above(0.0));
      f.number("expand_v", expand_v, "width of all values, as a multiple of dim", Range::above(0.0));
      f.integer("short_conv", short_conv, "taps of the causal convolution on q, k and v; 0 = none",
                Range::between(0, 64));
      f.boolean("conv_bias", conv_bias, "the convolutions have a bias");
      f.choice("activation", activation, {"silu", "relu", "elu", "none"},
               "of queries and keys, after the convolution; elu is elu + 1. Values always have silu");
      f.choice("qk_norm", qk_norm, {"l2", "sum"},
               "queries and keys get length 1, after the encoding, or sum 1, before it (with relu or elu)");
      f.boolean("beta", beta, "the step is a sigmoid of a projection of the input; without it 1");
      f.boolean("negative_eigenvalues", negative_eigenvalues, "the step is twice the sigmoid, up to 2");
      f.boolean("output_gate", output_gate, "multiply the normed output by silu of a projection of the input");
      f.boolean("norm_affine", norm_affine, "the output norm has a weight");
    }
  };

  static std::optional<std::string> refuses(const Options& o, std::int64_t dim) {
    if (auto reason = backbones::uneven_heads("expand_k", dim, o.expand_k, o.heads)) return reason;
    if (auto reason = backbones::uneven_heads("expand_v", dim, o.expand_v, o.heads)) return reason;
    if (o.qk_norm == "sum" && o.activation != "relu" && o.activation != "elu")
      return "qk_norm sum wants features that are not negative: activation relu or elu, not " + o.activation;
    if (o.conv_bias && o.short_conv == 0) return "conv_bias without a convolution: short_conv is 0";
    if (o.negative_eigenvalues && !o.beta) return "negative_eigenvalues without beta";
    return std::nullopt;
  }

  static MixerShape shape(const Options& o, std::int64_t dim) {
    return {dim, o.heads, o.heads, backbones::head_width(dim, o.expand_k, o.heads),
            backbones::head_width(dim, o.expand_v, o.heads)};
  }

  static Hook offers(const Options&) { return Hook::input | Hook::query_key; }

  DeltaNet(const Options& options, std::int64_t dim, double norm_eps, const ParameterScope& scope)
      : o_(options), s_(shape(options, dim)), eps_(norm_eps) {
    const std::int64_t keys = s_.heads * s_.key_dim, values = s_.heads * s_.value_dim;
    // One matrix product for everything that reads x: the matrices stand side by side in memory.
    std::vector<Parameter> rows = {scope.weight("q_proj.weight", keys, dim), scope.weight("k_proj.weight", keys, dim),
                                   scope.weight("v_proj.weight", values, dim)};
    widths_ = {keys, keys, values};
    if (o_.output_gate) {
      rows.push_back(scope.weight("g_proj.weight", values, dim));
      widths_.push_back(values);
    }
    if (o_.beta) {
      rows.push_back(scope.weight("b_proj.weight", s_.heads, dim));
      widths_.push_back(s_.heads);
    }
    inputs_ = ParameterStore::stack(rows);
    if (o_.short_conv > 0) {
      q_conv_ = Convolution(scope, "q_conv", keys, o_);
      k_conv_ = Convolution(scope, "k_conv", keys, o_);
      v_conv_ = Convolution(scope, "v_conv", values, o_);
    }
    if (o_.norm_affine) norm_ = scope.ones("o_norm.weight", {s_.value_dim});
    output_ = scope.weight("o_proj.weight", dim, values);
  }

  Tensor forward(Tape& tape, const Tensor& input, const Encoding& encoding, const SequenceContext& context,
                 State* state) const override {
    const Tensor x = contains(encoding.hook(), Hook::input) ? encoding.on_input(tape, input, context, state) : input;
    const auto parts = tape.split(ops::linear(tape, x, inputs_(), {}), widths_);
    const bool silu = o_.activation == "silu";
    const auto heads = [&](const Tensor& t, const Convolution& conv, bool activated) {
      return backbones::split_heads(convolve(tape, t, conv, activated, context, state), s_.heads);
    };
    QueryKey qk{heads(parts[0], q_conv_, silu), heads(parts[1], k_conv_, silu)};
    const Tensor v = heads(parts[2], v_conv_, true);
    qk = {features(tape, qk.q), features(tape, qk.k)};
    if (contains(encoding.hook(), Hook::query_key)) qk = encoding.on_query_key(tape, qk, x, context, state);
    if (o_.qk_norm == "l2") qk = {ops::l2_norm(tape, qk.q, 1e-6), ops::l2_norm(tape, qk.k, 1e-6)};

    Tensor beta;
    if (o_.beta) beta = ops::sigmoid(tape, parts[widths_.size() - 1]);
    if (o_.negative_eigenvalues) beta = ops::scale(tape, beta, 2.0);
    if (beta) context.show("write_gate", beta);
    const double scale = 1.0 / std::sqrt(static_cast<double>(s_.key_dim));
    const auto mixed =
        ops::delta_rule(tape, qk.q, qk.k, v, beta, {}, scale, state == nullptr ? Tensor() : state->get("s"),
                        state != nullptr, 0, context.starts);
    if (state != nullptr) state->set("s", mixed.state);

    const Tensor normed =
        o_.output_gate ? ops::gated_rms_norm(tape, mixed.o, backbones::split_heads(parts[3], s_.heads), norm_(), eps_,
                                             ops::GateKind::silu, ops::GateOrder::norm_first)
                       : ops::rms_norm(tape, mixed.o, norm_(), eps_);
    return ops::linear(tape, backbones::join_heads(normed), output_(), {});
  }

 private:
  struct Convolution {
    std::string name;
    Parameter weight, bias;
    Convolution() = default;
    Convolution(const ParameterScope& scope, const std::string& called, std::int64_t channels, const Options& o)
        : name(called), weight(scope.weight(called + "1d.weight", channels, o.short_conv)) {
      if (o.conv_bias) bias = scope.zeros(called + "1d.bias", {channels});
    }
  };

  /// The convolution, or where there is none the activation that would stand behind it.
  Tensor convolve(Tape& tape, const Tensor& x, const Convolution& conv, bool silu, const SequenceContext& context,
                  State* state) const {
    if (o_.short_conv == 0) return silu ? ops::silu(tape, x) : x;
    return backbones::carried_conv(tape, x, conv.weight(), conv.bias(), silu, conv.name, context, state);
  }

  /// What comes before the encoding: the activations that the convolution does not have, and the norm by the sum.
  Tensor features(Tape& tape, Tensor x) const {
    if (o_.activation == "relu") x = ops::relu(tape, x);
    if (o_.activation == "elu") x = ops::elu_plus_one(tape, x);
    return o_.qk_norm == "sum" ? ops::sum_norm(tape, x, 1e-12) : x;  // relu may leave a vector of zeros
  }

  Options o_;
  MixerShape s_;
  double eps_;
  std::vector<std::int64_t> widths_;
  Parameter inputs_, norm_, output_;
  Convolution q_conv_, k_conv_, v_conv_;
};

void register_all(Registry& registry) {
  registry.backbone<DeltaNet>("deltanet", 1, "delta rule: matrix state, each step corrects what it reads at its key");
}

}  // namespace

PHASOR_PLUGIN("deltanet", "1.0", register_all)
