// Softmax attention (Vaswani et al. 2017; layers.md 4.1), with grouped heads, a window and query/key norms as options.

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/nn/earlier.h"
#include "core/nn/mixer.h"
#include "core/ops/attention/attention.h"
#include "core/ops/linear/linear.h"
#include "core/ops/rms_norm/rms_norm.h"
#include "core/plugin/manifest.h"

namespace {

using namespace phasor;

class Transformer final : public Mixer {
 public:
  struct Options {
    std::int64_t heads = 4;
    std::optional<std::int64_t> kv_heads, window;
    bool bias = false, output_bias = false, qk_norm = false;

    void fields(FieldList& f) {
      f.integer("heads", heads, "query heads", Range::at_least(1));
      f.integer("kv_heads", kv_heads, "key and value heads; not set: as many as heads", Range::at_least(1));
      f.boolean("bias", bias, "the projections of queries, keys and values have a bias");
      f.boolean("output_bias", output_bias, "the output projection has a bias");
      f.integer("window", window, "tokens that a query sees, its own included; not set: all before it", Range::at_least(1));
      f.boolean("qk_norm", qk_norm, "RMS norm of every query and key, with weights that the heads share");
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

  Transformer(const Options& options, std::int64_t dim, double, const ParameterScope& scope)
      : o_(options), s_(shape(options, dim)) {
    const std::int64_t narrow = s_.kv_heads * s_.key_dim;
    // One matrix product for everything that reads x: the matrices stand side by side in memory.
    inputs_ = ParameterStore::stack({scope.weight("q_proj.weight", dim, dim), scope.weight("k_proj.weight", narrow, dim),
                                     scope.weight("v_proj.weight", narrow, dim)});
    if (o_.bias)
      input_bias_ = ParameterStore::stack(
          {scope.zeros("q_proj.bias", {dim}), scope.zeros("k_proj.bias", {narrow}), scope.zeros("v_proj.bias", {narrow})});
    widths_ = {dim, narrow, narrow};
    if (o_.qk_norm) {
      q_norm_ = scope.ones("q_norm.weight", {s_.key_dim});
      k_norm_ = scope.ones("k_norm.weight", {s_.key_dim});
    }
    output_ = scope.weight("o_proj.weight", dim, dim);
    if (o_.output_bias) output_bias_ = scope.zeros("o_proj.bias", {dim});
  }

  Tensor forward(Tape& tape, const Tensor& input, const Encoding& encoding, const SequenceContext& context,
                 State* state) const override {
    const Tensor x = contains(encoding.hook(), Hook::input) ? encoding.on_input(tape, input, context, state) : input;
    const auto parts = tape.split(ops::linear(tape, x, inputs_(), input_bias_()), widths_);
    const auto heads = [&](const Tensor& t, std::int64_t count) {
      return t.reshape({x.size(0), x.size(1), count, s_.key_dim});
    };
    QueryKey qk{heads(parts[0], s_.heads), heads(parts[1], s_.kv_heads)};
    if (!encoding.rotates_before_norm()) qk = normed(tape, qk);
    if (contains(encoding.hook(), Hook::query_key)) qk = encoding.on_query_key(tape, qk, x, context, state);
    if (encoding.rotates_before_norm()) qk = normed(tape, qk);

    const auto cached = [&](const Tensor& piece, const char* name) { return with_earlier(tape, piece, name, o_.window, state); };
    ScoreBias bias;
    if (contains(encoding.hook(), Hook::scores)) bias = encoding.score_bias(tape, x, context, state);
    const Tensor decay = bias.log_decay ? cached(bias.log_decay, "decay_cache") : Tensor();
    const ops::AttentionOptions options{1.0 / std::sqrt(static_cast<double>(s_.key_dim)), true, o_.window.value_or(0),
                                        bias.slopes};
    const Tensor mixed =
        ops::attention(tape, qk.q, cached(qk.k, "k_cache"), cached(heads(parts[2], s_.kv_heads), "v_cache"), options, decay,
                       context.starts);
    return ops::linear(tape, mixed.reshape({x.size(0), x.size(1), s_.dim}), output_(), output_bias_());
  }

 private:
  QueryKey normed(Tape& tape, const QueryKey& qk) const {
    if (!o_.qk_norm) return qk;
    return {ops::rms_norm(tape, qk.q, q_norm_(), norm_eps), ops::rms_norm(tape, qk.k, k_norm_(), norm_eps)};
  }

  static constexpr double norm_eps = 1e-5;  // not the model's: layers.md 2

  Options o_;
  MixerShape s_;
  std::vector<std::int64_t> widths_;
  Parameter inputs_, input_bias_, q_norm_, k_norm_, output_, output_bias_;
};

void register_all(Registry& registry) {
  registry.backbone<Transformer>("transformer", 1, "softmax attention over all earlier tokens, or a window of them");
}

}  // namespace

PHASOR_PLUGIN("transformer", "1.0", register_all)
