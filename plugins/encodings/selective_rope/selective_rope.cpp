// Selective RoPE (ICLR 2026; layers.md 3.3): queries and keys are rotated by the running sum of phases that depend on the
// input. Defaults are the reference's; the options go beyond it where the paper's own ablations need them.

#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "core/nn/encoding.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/head_linear/head_linear.h"
#include "core/ops/l2_norm/l2_norm.h"
#include "core/ops/linear/linear.h"
#include "core/ops/rotate_pairs/rotate_pairs.h"
#include "core/ops/running_phase/running_phase.h"
#include "core/ops/short_conv/short_conv.h"
#include "core/ops/time_difference/time_difference.h"
#include "core/ops/weight_norm/weight_norm.h"
#include "core/plugin/manifest.h"

namespace {

using namespace phasor;

struct ProjectionOptions {
  std::string kind = "low_rank";
  std::int64_t rank = 16;
  std::optional<bool> weight_norm;

  bool normed() const { return weight_norm.value_or(kind == "full_rank"); }
  void fields(FieldList& f) {
    f.choice("kind", kind, {"low_rank", "full_rank", "none"}, "low_rank mixes heads, full_rank is one matrix per head");
    f.integer("rank", rank, "of low_rank", Range::at_least(1));
    f.boolean("weight_norm", weight_norm, "normalise the weights, with a learned scale; not set: full_rank yes, low_rank no");
  }
};

struct TimeMixingOptions {
  std::string kind = "conv";
  std::int64_t width = 4;
  std::string activation = "none";

  void fields(FieldList& f) {
    f.choice("kind", kind, {"conv", "difference", "identity"}, "filter of the raw phase over time; difference is the reference's skip_conv");
    f.integer("width", width, "taps of conv", Range::between(1, 64));
    f.choice("activation", activation, {"none", "silu"}, "after conv");
  }
};

struct GateOptions {
  std::string kind = "none";
  std::int64_t rank = 16;

  void fields(FieldList& f) {
    f.choice("kind", kind, {"none", "standard", "low_rank", "per_plane"},
             "phase gate: one per head (standard, low_rank) or one per plane");
    f.integer("rank", rank, "of low_rank and per_plane", Range::at_least(1));
  }
};

struct TemperatureOptions {
  std::string kind = "rope";
  double theta = 500000.0, max = 1.0;
  bool learned = false;

  void fields(FieldList& f) {
    f.choice("kind", kind, {"rope", "rfa"}, "rope: max * theta^(-2i/K); rfa: max * tan(w/2) / largest, w = 0 .. theta*pi");
    f.number("theta", theta, "rope: at least 1; rfa: between 0 and 1", Range::above(0.0));
    f.number("max", max, "largest temperature", Range::above(0.0));
    f.boolean("learned", learned, "train the temperatures");
  }
};

std::vector<double> temperatures(const TemperatureOptions& o, std::int64_t planes) {
  std::vector<double> table(static_cast<std::size_t>(planes));
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (o.kind == "rope") {
      table[i] = o.max * std::pow(o.theta, -static_cast<double>(i) / static_cast<double>(planes));
    } else {
      const double share = planes == 1 ? 0.0 : static_cast<double>(i) / static_cast<double>(planes - 1);
      table[i] = std::tan(o.theta * std::numbers::pi * share / 2.0);
    }
  }
  if (o.kind == "rfa") {
    const double top = table.back();
    for (double& value : table) value *= o.max / top;
  }
  return table;
}

class SelectiveRope final : public Encoding {
 public:
  struct Options {
    std::string input = "x", input_norm = "l2", increment = "signed";
    ProjectionOptions projection;
    TimeMixingOptions time_mixing;
    bool bias = false, bias_learned = true;
    GateOptions gate;
    TemperatureOptions temperature;

    void fields(FieldList& f) {
      f.choice("input", input, {"x", "q"}, "what the phase projection reads: the mixer's input or the query before rotation");
      f.choice("input_norm", input_norm, {"l2", "none"}, "norm per head slice of what projection and gate read");
      f.object("projection", projection, "from the input to one raw phase per head and plane");
      f.object("time_mixing", time_mixing, "filter over time");
      f.choice("increment", increment, {"signed", "abs", "softplus"}, "sign of the phase per step, before the bias");
      f.boolean("bias", bias, "add exp(b), one per head and plane: with zero input this is RoPE");
      f.boolean("bias_learned", bias_learned, "train the bias; otherwise it adds 1 for good, in units of the temperature");
      f.object("gate", gate, "multiplies the phase per step");
      f.object("temperature", temperature, "one factor per plane, shared by the heads");
    }
  };

  static std::optional<std::string> refuses(const Options& o, const MixerShape& s) {
    if (s.key_dim % 2 != 0) return "it rotates pairs and needs an even width per head, found " + std::to_string(s.key_dim);
    if (s.kv_heads != s.heads)
      return "it needs as many key heads as query heads, found " + std::to_string(s.kv_heads) + " and " + std::to_string(s.heads);
    const bool slices = o.input_norm == "l2" || o.projection.kind == "full_rank";
    if (slices && s.dim % s.heads != 0)
      return "dim " + std::to_string(s.dim) + " does not split into " + std::to_string(s.heads) + " slices";
    if (o.projection.kind == "none" && !o.bias) return "projection none without bias never rotates; use the encoding nope";
    if (!o.bias && !o.bias_learned) return "bias_learned false without a bias: there is nothing to freeze";
    if (o.temperature.kind == "rope" && o.temperature.theta < 1.0) return "temperature rope needs theta of at least 1";
    if (o.temperature.kind == "rfa" && o.temperature.theta >= 1.0) return "temperature rfa needs theta below 1";
    if (o.temperature.kind == "rfa" && s.key_dim < 4) return "temperature rfa needs at least two planes per head";
    return std::nullopt;
  }

  SelectiveRope(const Options& options, const MixerShape& shape, const ParameterScope& scope) : o_(options), s_(shape) {
    const std::int64_t channels = s_.heads * planes();
    const std::int64_t width = o_.input == "q" ? s_.heads * s_.key_dim : s_.dim;  // of what the projection reads
    const bool normed = o_.projection.normed(), low_rank = o_.projection.kind == "low_rank";
    if (low_rank) down_ = scope.weight("phi_proj.0.weight", o_.projection.rank, width);
    const std::int64_t gates = o_.gate.kind == "per_plane" ? channels : s_.heads;
    if (o_.gate.kind == "standard") {
      gate_in_ = scope.weight("phase_gate_proj.weight", gates, s_.dim);
    } else if (o_.gate.kind != "none") {
      gate_in_ = scope.weight("phase_gate_proj.0.weight", o_.gate.rank, s_.dim);
    }
    // One matrix product for both where they read the same: the matrices stand side by side in memory.
    if (low_rank && !normed && o_.input == "x" && gate_in_) both_ = ParameterStore::stack({down_, gate_in_});
    if (o_.gate.kind == "standard") {
      gate_bias_ = scope.zeros("phase_gate_proj.bias", {gates});
    } else if (o_.gate.kind != "none") {
      gate_ = scope.weight("phase_gate_proj.1.weight", gates, o_.gate.rank);
      gate_bias_ = scope.zeros("phase_gate_proj.1.bias", {gates});
    }
    if (low_rank) {
      if (normed) down_scale_ = scope.ones("phi_proj.0.scalar", {1});
      up_ = scope.weight("phi_proj.1.weight", channels, o_.projection.rank);
      if (normed) up_scale_ = scope.ones("phi_proj.1.scalar", {1});
    } else if (o_.projection.kind == "full_rank") {
      const double bound = std::sqrt(6.0 / static_cast<double>(planes()));
      up_ = scope.add("phi_proj.weight", {s_.heads, width / s_.heads, planes()},
                      normed ? Init::uniform(-bound, bound) : Init::normal(scope.init_std()));
      if (normed) up_scale_ = scope.ones("phi_proj.scalar", {s_.heads});
    }
    if (projects() && o_.time_mixing.kind == "conv") conv_ = scope.weight("phi_conv1d.weight", channels, o_.time_mixing.width);
    if (o_.bias) bias_ = scope.add("phi_bias", {s_.heads, planes()}, Init::zeros(), !o_.bias_learned);
    temperature_ = scope.add("temperature", {planes()}, Init::table(temperatures(o_.temperature, planes())),
                             !o_.temperature.learned);
  }

  Hook hook() const override { return Hook::query_key; }
  bool rotates_before_norm() const override { return true; }

  QueryKey on_query_key(Tape& tape, QueryKey qk, const Tensor& x, const SequenceContext& context,
                        State* state) const override {
    const Tensor normed = reads_x() ? normalised(tape, x.reshape({x.size(0), x.size(1), s_.dim})) : Tensor();
    const Reading read = first_products(tape, qk.q, normed);
    Tensor phase = projects() ? mixed_over_time(tape, projected(tape, read.phase), context, state)
                              : tape.zeros({x.size(0), x.size(1), s_.heads, planes()});
    if (o_.bias) phase = ops::add_row(tape, phase, ops::exp(tape, bias_()));
    if (o_.gate.kind != "none") {
      const Tensor factor = gate(tape, read.gate);
      phase = ops::mul_groups(tape, phase, factor);
      context.show("phase_gate", factor);
    }
    context.show("phase", phase);
    context.show("temperature", temperature_());
    const auto running = ops::running_phase(tape, phase, temperature_(), state == nullptr ? Tensor() : state->get("phase"),
                                            state != nullptr, context.starts);
    if (state != nullptr) state->set("phase", running.state);
    const auto rotated = ops::rotate_pairs(tape, qk.q, qk.k, running.angle, ops::PairLayout::half_split);
    return {rotated.q, rotated.k};
  }

 private:
  std::int64_t planes() const { return s_.key_dim / 2; }
  bool projects() const { return o_.projection.kind != "none"; }
  bool reads_x() const { return o_.gate.kind != "none" || (projects() && o_.input == "x"); }

  /// [batch, time, width], normalised per head slice where the options say so.
  Tensor normalised(Tape& tape, const Tensor& t) const {
    if (o_.input_norm == "none") return t;
    const Tensor slices = t.reshape({t.size(0), t.size(1), s_.heads, t.width() / s_.heads});
    return ops::l2_norm(tape, slices, 1e-6).reshape({t.size(0), t.size(1), t.width()});
  }

  /// What comes of the first matrices of phase and gate, [batch, time, ..]; for a full-rank phase its input. Empty where
  /// there is no such branch.
  struct Reading {
    Tensor phase, gate;
  };

  Reading first_products(Tape& tape, const Tensor& q, const Tensor& normed) const {
    if (both_) {
      const std::array<std::int64_t, 2> widths{o_.projection.rank, gate_in_().size(0)};
      const auto parts = tape.split(ops::linear(tape, normed, both_(), {}), widths);
      return {parts[0], parts[1]};
    }
    Reading read;
    if (gate_in_) read.gate = ops::linear(tape, normed, gate_in_(), {});
    if (!projects()) return read;
    read.phase = o_.input == "x" ? normed : normalised(tape, q.reshape({q.size(0), q.size(1), s_.heads * s_.key_dim}));
    if (!down_) return read;
    const Tensor down = o_.projection.normed() ? ops::weight_norm_rows(tape, down_(), down_scale_()) : down_();
    read.phase = ops::linear(tape, read.phase, down, {});
    return read;
  }

  /// Raw phase, [batch, time, heads, planes].
  Tensor projected(Tape& tape, const Tensor& in) const {
    const std::int64_t batch = in.size(0), time = in.size(1);
    const bool normed_weights = o_.projection.normed();
    if (o_.projection.kind == "full_rank") {
      const Tensor weight = normed_weights ? ops::weight_norm_columns(tape, up_(), up_scale_()) : up_();
      return ops::head_linear(tape, in.reshape({batch, time, s_.heads, in.width() / s_.heads}), weight);
    }
    const Tensor up = normed_weights ? ops::weight_norm_rows(tape, up_(), up_scale_()) : up_();
    return ops::linear(tape, in, up, {}).reshape({batch, time, s_.heads, planes()});
  }

  Tensor mixed_over_time(Tape& tape, Tensor phase, const SequenceContext& context, State* state) const {
    const Shape heads = phase.shape();
    const Tensor flat = phase.reshape({heads[0], heads[1], s_.heads * planes()});
    if (o_.time_mixing.kind == "conv") {
      const auto result = ops::short_conv(tape, flat, conv_(), {}, o_.time_mixing.activation == "silu",
                                          state == nullptr ? Tensor() : state->get("phi_conv"), state != nullptr,
                                          context.starts);
      if (state != nullptr) state->set("phi_conv", result.state);
      phase = result.y.reshape(heads);
    } else if (o_.time_mixing.kind == "difference") {
      const auto result = ops::time_difference(tape, flat, state == nullptr ? Tensor() : state->get("phi_raw"),
                                               state != nullptr, context.starts);
      if (state != nullptr) state->set("phi_raw", result.state);
      phase = result.y.reshape(heads);
    }
    if (o_.increment == "abs") return ops::abs(tape, phase);
    if (o_.increment == "softplus") return ops::softplus(tape, phase);
    return phase;
  }

  /// In (0, 1): [batch, time, heads] or [batch, time, heads * planes].
  Tensor gate(Tape& tape, const Tensor& in) const {
    if (gate_) return ops::sigmoid(tape, ops::linear(tape, in, gate_(), gate_bias_()));
    return ops::sigmoid(tape, ops::add_row(tape, in, gate_bias_()));
  }

  Options o_;
  MixerShape s_;
  Parameter down_, down_scale_, up_, up_scale_, conv_, bias_, gate_in_, gate_, gate_bias_, temperature_;
  Parameter both_;  // down_ and gate_in_, where one product serves both
};

void register_all(Registry& registry) {
  registry.encoding<SelectiveRope>("selective_rope", 1, "rotation by the running sum of input-dependent phases");
}

}  // namespace

PHASOR_PLUGIN("selective_rope", "1.0", register_all)
