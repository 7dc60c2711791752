// RetNet (Sun et al. 2023; layers.md 5.3): a matrix state per head with a fixed decay. Its rotation is the encoding's:
// with `rope` and theta 10000 it is the published layer, with `nope` it has no positions but the decay.

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/base/portable_math.h"
#include "core/nn/mixer.h"
#include "core/ops/gated_rms_norm/gated_rms_norm.h"
#include "core/ops/linear/linear.h"
#include "core/ops/linear_attention/linear_attention.h"
#include "core/plugin/manifest.h"
#include "plugins/backbones/heads.h"

namespace {

using namespace phasor;

class RetNet final : public Mixer {
 public:
  struct Options {
    std::int64_t heads = 8;
    double expand_k = 1.0, expand_v = 2.0;
    std::int64_t short_conv = 0;

    void fields(FieldList& f) {
      f.integer("heads", heads, "head h keeps 1 - 2^(-5-h) of its state per step", Range::between(1, 1024));
      f.number("expand_k", expand_k, "width of all keys, as a multiple of dim", Range::above(0.0));
      f.number("expand_v", expand_v, "width of all values, as a multiple of dim", Range::above(0.0));
      f.integer("short_conv", short_conv, "taps of the causal convolution (with SiLU) on q, k and v; 0 = none",
                Range::between(0, 64));
    }
  };

  static std::optional<std::string> refuses(const Options& o, std::int64_t dim) {
    if (auto reason = backbones::uneven_heads("expand_k", dim, o.expand_k, o.heads)) return reason;
    return backbones::uneven_heads("expand_v", dim, o.expand_v, o.heads);
  }

  static MixerShape shape(const Options& o, std::int64_t dim) {
    return {dim, o.heads, o.heads, backbones::head_width(dim, o.expand_k, o.heads),
            backbones::head_width(dim, o.expand_v, o.heads)};
  }

  static Hook offers(const Options&) { return Hook::input | Hook::query_key; }

  RetNet(const Options& options, std::int64_t dim, double norm_eps, const ParameterScope& scope)
      : o_(options), s_(shape(options, dim)), eps_(norm_eps) {
    const std::int64_t keys = s_.heads * s_.key_dim, values = s_.heads * s_.value_dim;
    widths_ = {keys, keys, values, values};
    // One matrix product for everything that reads x: the matrices stand side by side in memory.
    inputs_ = ParameterStore::stack({scope.weight("q_proj.weight", keys, dim), scope.weight("k_proj.weight", keys, dim),
                                     scope.weight("v_proj.weight", values, dim), scope.weight("g_proj.weight", values, dim)});
    if (o_.short_conv > 0) {
      q_conv_ = scope.weight("q_conv1d.weight", keys, o_.short_conv);
      k_conv_ = scope.weight("k_conv1d.weight", keys, o_.short_conv);
      v_conv_ = scope.weight("v_conv1d.weight", values, o_.short_conv);
    }
    norm_ = scope.ones("g_norm.weight", {s_.value_dim});
    output_ = scope.weight("o_proj.weight", dim, values);
    std::vector<double> decays;
    for (std::int64_t h = 0; h < s_.heads; ++h) decays.push_back(portable::log(1.0 - std::ldexp(1.0, -5 - static_cast<int>(h))));
    decays_ = scope.table(decays);
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
    QueryKey qk{backbones::split_heads(parts[0], s_.heads), backbones::split_heads(parts[1], s_.heads)};
    if (contains(encoding.hook(), Hook::query_key)) qk = encoding.on_query_key(tape, qk, x, context, state);
    const double scale = 1.0 / std::sqrt(static_cast<double>(s_.key_dim));
    const auto mixed = ops::linear_attention(tape, qk.q, qk.k, backbones::split_heads(parts[2], s_.heads), decays_(), scale,
                                             false, state == nullptr ? Tensor() : state->get("s"), {}, state != nullptr,
                                             context.starts);
    if (state != nullptr) state->set("s", mixed.state);
    const Tensor normed = ops::gated_rms_norm(tape, mixed.o, backbones::split_heads(parts[3], s_.heads), norm_(), eps_,
                                              ops::GateKind::silu, ops::GateOrder::norm_first);
    return ops::linear(tape, backbones::join_heads(normed), output_(), {});
  }

 private:
  Options o_;
  MixerShape s_;
  double eps_;
  std::vector<std::int64_t> widths_;
  Table decays_;  // [heads], logarithms
  Parameter inputs_, q_conv_, k_conv_, v_conv_, norm_, output_;
};

}  // namespace

PHASOR_PLUGIN("retnet", "1.0", [](phasor::Registry& registry) {
  registry.backbone<RetNet>("retnet", 1, "retention: matrix state with a fixed decay per head; its rotation is the encoding rope, theta 10000");
})
