// Forgetting attention, FoX (Lin et al. 2025; layers.md 4.2): softmax attention whose scores fall by a learned log-gate
// per token and query head. The reference has no output norm; `output_norm` and `output_gate` together are the paper's
// "Pro".

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/nn/earlier.h"
#include "core/nn/mixer.h"
#include "core/ops/attention/attention.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/gated_rms_norm/gated_rms_norm.h"
#include "core/ops/linear/linear.h"
#include "core/ops/rms_norm/rms_norm.h"
#include "core/plugin/manifest.h"

namespace {

using namespace phasor;

class Fox final : public Mixer {
 public:
  struct Options {
    std::int64_t heads = 4;
    std::optional<std::int64_t> kv_heads, window;
    bool bias = false, qk_norm = false, output_gate = false, output_norm = false;

    void fields(FieldList& f) {
      f.integer("heads", heads, "query heads; each forgets at its own rate", Range::at_least(1));
      f.integer("kv_heads", kv_heads, "key and value heads; not set: as many as heads", Range::at_least(1));
      f.boolean("bias", bias, "the projections of queries, keys and values have a bias");
      f.integer("window", window, "tokens that a query sees, its own included; not set: all before it",
                Range::at_least(1));
      f.boolean("qk_norm", qk_norm, "RMS norm of every query and key, with a weight per head and channel");
      f.boolean("output_gate", output_gate, "multiply the output by sigmoid of a projection of the input");
      f.boolean("output_norm", output_norm, "RMS norm of every head's output, before the gate");
    }
  };

  static std::optional<std::string> refuses(const Options& o, std::int64_t dim) {
    if (dim % o.heads != 0)
      return "heads: found " + std::to_string(o.heads) + ", expected a divisor of dim " + std::to_string(dim);
    if (o.kv_heads && o.heads % *o.kv_heads != 0)
      return "heads " + std::to_string(o.heads) + " is not a multiple of kv_heads " + std::to_string(*o.kv_heads);
    return std::nullopt;
  }

  static MixerShape shape(const Options& o, std::int64_t dim) {
    return {dim, o.heads, o.kv_heads.value_or(o.heads), dim / o.heads, dim / o.heads};
  }

  static Hook offers(const Options&) { return Hook::input | Hook::query_key | Hook::scores; }

  Fox(const Options& options, std::int64_t dim, double, const ParameterScope& scope)
      : o_(options), s_(shape(options, dim)) {
    const std::int64_t narrow = s_.kv_heads * s_.key_dim;
    // One matrix product for queries, keys and values: the matrices stand side by side in memory.
    inputs_ =
        ParameterStore::stack({scope.weight("q_proj.weight", dim, dim), scope.weight("k_proj.weight", narrow, dim),
                               scope.weight("v_proj.weight", narrow, dim)});
    if (o_.bias)
      input_bias_ = ParameterStore::stack({scope.zeros("q_proj.bias", {dim}), scope.zeros("k_proj.bias", {narrow}),
                                           scope.zeros("v_proj.bias", {narrow})});
    widths_ = {dim, narrow, narrow};
    forget_ = scope.weight("f_proj.weight", s_.heads, dim);
    forget_bias_ = scope.zeros("f_proj.bias", {s_.heads});
    if (o_.qk_norm) {
      q_norm_ = scope.ones("q_norm.weight", {dim});
      k_norm_ = scope.ones("k_norm.weight", {narrow});
    }
    if (o_.output_gate) gate_ = scope.weight("g_proj.weight", dim, dim);
    if (o_.output_norm) output_norm_ = scope.ones("o_norm.weight", {s_.value_dim});
    output_ = scope.weight("o_proj.weight", dim, dim);
  }

  Tensor forward(Tape& tape, const Tensor& input, const Encoding& encoding, const SequenceContext& context,
                 State* state) const override {
    const Tensor x = contains(encoding.hook(), Hook::input) ? encoding.on_input(tape, input, context, state) : input;
    const auto parts = tape.split(ops::linear(tape, x, inputs_(), input_bias_()), widths_);
    const auto heads = [&](const Tensor& t, std::int64_t count) {
      return t.reshape({x.size(0), x.size(1), count, s_.key_dim});
    };
    const auto cached = [&](const Tensor& piece, const char* name) {
      return with_earlier(tape, piece, name, o_.window, state);
    };
    QueryKey qk{heads(parts[0], s_.heads), heads(parts[1], s_.kv_heads)};
    if (!encoding.rotates_before_norm()) qk = normed(tape, qk);
    if (contains(encoding.hook(), Hook::query_key)) qk = encoding.on_query_key(tape, qk, x, context, state);
    if (encoding.rotates_before_norm()) qk = normed(tape, qk);

    ScoreBias bias;
    if (contains(encoding.hook(), Hook::scores)) bias = encoding.score_bias(tape, x, context, state);
    const Tensor forget = ops::log_sigmoid(tape, ops::linear(tape, x, forget_(), forget_bias_()));
    context.show("log_decay", forget);
    const Tensor decay = bias.log_decay ? ops::add(tape, forget, bias.log_decay) : forget;
    const ops::AttentionOptions options{1.0 / std::sqrt(static_cast<double>(s_.key_dim)), true, o_.window.value_or(0),
                                        bias.slopes};
    const Tensor mixed =
        ops::attention(tape, qk.q, cached(qk.k, "k_cache"), cached(heads(parts[2], s_.kv_heads), "v_cache"), options,
                       cached(decay, "decay_cache"), context.starts);
    return ops::linear(tape, finished(tape, mixed, x).reshape({x.size(0), x.size(1), s_.dim}), output_(), {});
  }

 private:
  QueryKey normed(Tape& tape, const QueryKey& qk) const {
    if (!o_.qk_norm) return qk;
    return {ops::rms_norm(tape, qk.q, q_norm_(), eps), ops::rms_norm(tape, qk.k, k_norm_(), eps)};
  }

  /// Norm and gate of the heads' outputs [batch, time, heads, value_dim].
  Tensor finished(Tape& tape, const Tensor& mixed, const Tensor& x) const {
    if (!o_.output_gate) return o_.output_norm ? ops::rms_norm(tape, mixed, output_norm_(), eps) : mixed;
    const Tensor gate = ops::linear(tape, x, gate_(), {}).reshape(mixed.shape());
    if (o_.output_norm)
      return ops::gated_rms_norm(tape, mixed, gate, output_norm_(), eps, ops::GateKind::sigmoid,
                                 ops::GateOrder::norm_first);
    return ops::mul(tape, mixed, ops::sigmoid(tape, gate));
  }

  static constexpr double eps = 1e-5;  // of its norms; not the model's: layers.md 4.2

  Options o_;
  MixerShape s_;
  std::vector<std::int64_t> widths_;
  Parameter inputs_, input_bias_, forget_, forget_bias_, q_norm_, k_norm_, gate_, output_norm_, output_;
};

void register_all(Registry& registry) {
  registry.backbone<Fox>("fox", 1, "softmax attention that forgets: scores fall by a learned gate per token and head");
}

}  // namespace

PHASOR_PLUGIN("fox", "1.0", register_all)
