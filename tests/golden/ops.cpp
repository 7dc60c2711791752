// Op rooms, called directly: parameters of a file are inputs like any other.

#include <algorithm>
#include <cmath>

#include "core/nn/model.h"
#include "core/ops/attention/attention.h"
#include "core/ops/cross_entropy/cross_entropy.h"
#include "core/ops/delta_rule/delta_rule.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/embedding/embedding.h"
#include "core/ops/feature_map/feature_map.h"
#include "core/ops/gated_rms_norm/gated_rms_norm.h"
#include "core/ops/gla/gla.h"
#include "core/ops/l2_norm/l2_norm.h"
#include "core/ops/layer_norm/layer_norm.h"
#include "core/ops/linear/linear.h"
#include "core/ops/linear_attention/linear_attention.h"
#include "core/ops/rms_norm/rms_norm.h"
#include "core/ops/shared_head_linear/shared_head_linear.h"
#include "core/ops/short_conv/short_conv.h"
#include "core/ops/swiglu/swiglu.h"
#include "tests/golden/pass.h"
#include "tests/golden/units.h"

namespace phasor::golden {

namespace {

double number(const GoldenFile& file, std::string_view key) { return file.options.find(key)->as_number(); }

std::vector<Results> run_rms_norm(const GoldenFile& file, const Stream& stream) {
  Pass pass(file, stream);
  pass.output("y", ops::rms_norm(pass.tape(), pass.leaf("x"), pass.leaf("weight"), number(file, "eps")));
  return {pass.finish()};
}

std::vector<Results> run_layer_norm(const GoldenFile& file, const Stream& stream) {
  Pass pass(file, stream);
  pass.output("y", ops::layer_norm(pass.tape(), pass.leaf("x"), pass.leaf("weight"), pass.leaf("bias"), number(file, "eps")));
  return {pass.finish()};
}

std::vector<Results> run_gated_rms_norm(const GoldenFile& file, const Stream& stream) {
  Pass pass(file, stream);
  const Json* activation = file.options.find("activation");  // absent where the gate comes first, which is silu
  const bool sigmoid = activation != nullptr && activation->as_string() == "sigmoid";
  pass.output("y",
              ops::gated_rms_norm(pass.tape(), pass.leaf("x"), pass.leaf("g"), pass.leaf("weight"), number(file, "eps"),
                                  sigmoid ? ops::GateKind::sigmoid : ops::GateKind::silu,
                                  activation != nullptr ? ops::GateOrder::norm_first : ops::GateOrder::gate_first));
  return {pass.finish()};
}

std::vector<Results> run_l2_norm(const GoldenFile& file, const Stream& stream) {
  Pass pass(file, stream);
  pass.output("y", ops::l2_norm(pass.tape(), pass.leaf("x"), number(file, "eps")));
  return {pass.finish()};
}

std::vector<Results> run_short_conv(const GoldenFile& file, const Stream& stream) {
  Pass pass(file, stream);
  const bool cached = file.options.find("initial_state")->as_bool();
  const ops::ConvResult result =
      ops::short_conv(pass.tape(), pass.leaf("x"), pass.leaf("weight"), pass.leaf("bias"),
                      file.options.find("activation")->is_string(), pass.leaf("state"), cached);
  pass.output("y", result.y);
  if (cached) pass.output("state_out", result.state);
  return {pass.finish()};
}

std::vector<Results> run_linear(const GoldenFile& file, const Stream& stream) {
  Pass pass(file, stream);
  pass.output("y", ops::linear(pass.tape(), pass.leaf("x"), pass.leaf("weight"), pass.leaf("bias")));
  return {pass.finish()};
}

std::vector<Results> run_embedding(const GoldenFile& file, const Stream& stream) {
  Pass pass(file, stream);
  const Json& padding = *file.options.find("padding_idx");
  pass.output("y", ops::embedding(pass.tape(), pass.indices("ids"), pass.leaf("weight"),
                                  padding.is_null() ? -1 : padding.as_integer()));
  return {pass.finish()};
}

std::vector<Results> run_swiglu(const GoldenFile& file, const Stream& stream) {
  Pass pass(file, stream);
  const Tensor x = pass.leaf("x");
  const Tensor gate = ops::linear(pass.tape(), x, pass.leaf("gate_proj.weight"), {});
  const Tensor up = ops::linear(pass.tape(), x, pass.leaf("up_proj.weight"), {});
  pass.output("y", ops::linear(pass.tape(), ops::swiglu(pass.tape(), gate, up), pass.leaf("down_proj.weight"), {}));
  return {pass.finish()};
}

std::vector<Results> run_mlp_size(const GoldenFile& file, const Stream&) {
  Results results;
  Numbers& sizes = results.outputs["intermediate_size"];
  const std::vector<double>& widths = file.inputs.at("hidden_size").values;
  const Json::Array& ratios = file.options.find("hidden_ratio")->as_array();
  for (const Json& ratio : ratios)
    for (const double width : widths)
      sizes.values.push_back(static_cast<double>(swiglu_width(static_cast<std::int64_t>(width), ratio.as_integer())));
  sizes.dims = {static_cast<std::int64_t>(ratios.size()), static_cast<std::int64_t>(widths.size())};
  return {results};
}

std::vector<Results> run_cross_entropy(const GoldenFile& file, const Stream& stream) {
  Pass pass(file, stream);
  const Tensor targets = pass.indices("target");
  const Tensor rows = ops::cross_entropy(pass.tape(), pass.leaf("logits"), targets);
  const std::string& reduction = file.options.find("reduction")->as_string();
  if (reduction == "none") {
    pass.output("loss", rows);
    return {pass.finish()};
  }
  double sum = 0.0, scored = 0.0;
  for (const double loss : read(stream, rows).values) sum += loss;
  for (const double target : read(stream, targets).values) scored += target >= 0.0 ? 1.0 : 0.0;
  const double share = reduction == "mean" ? 1.0 / scored : 1.0;
  pass.report("loss", scalar(sum * share));
  const double cotangent = file.cotangents.at("loss").values[0];
  pass.seed(rows, std::vector<double>(static_cast<std::size_t>(rows.size()), cotangent * share));
  return {pass.finish()};
}

/// From the losses of single tokens: their mean, its exponential and the mean of every position.
std::vector<Results> run_perplexity(const GoldenFile& file, const Stream& stream) {
  Pass pass(file, stream);
  const Tensor logits = pass.leaf("logits");  // [batch, time, vocabulary]
  const std::int64_t batch = logits.size(0), time = logits.size(1);
  const Tensor targets = pass.indices("target").reshape({batch * time});
  const Tensor rows = ops::cross_entropy(pass.tape(), logits.reshape({batch * time, logits.size(2)}), targets);
  const std::vector<double> losses = read(stream, rows).values, labels = read(stream, targets).values;

  const auto positions = static_cast<std::size_t>(time);
  std::vector<double> sums(positions), counts(positions);
  double sum = 0.0, scored = 0.0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (labels[i] < 0.0) continue;
    sums[i % positions] += losses[i];
    counts[i % positions] += 1.0;
    sum += losses[i];
    scored += 1.0;
  }
  std::vector<double> means(positions);
  for (std::size_t t = 0; t < positions; ++t) means[t] = sums[t] / std::max(1.0, counts[t]);
  const double mean = sum / scored;
  pass.report("loss", scalar(mean));
  pass.report("perplexity", scalar(std::exp(mean)));
  pass.report("position_loss", {{time}, means});
  pass.report("position_scored", {{time}, counts});

  const double per_token =
      (file.cotangents.at("loss").values[0] + file.cotangents.at("perplexity").values[0] * std::exp(mean)) / scored;
  const std::vector<double>& per_position = file.cotangents.at("position_loss").values;
  std::vector<double> gradient(losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i)
    gradient[i] = per_token + per_position[i % positions] / std::max(1.0, counts[i % positions]);
  pass.seed(rows, gradient);
  return {pass.finish()};
}

std::vector<Results> run_gla(const GoldenFile& file, const Stream& stream) {
  std::vector<Results> all;
  for (const std::int64_t chunk : {0, 8, 64}) {  // 0: the chunk length that the op chooses
    Pass pass(file, stream);
    const Tensor q = pass.leaf("q");
    const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(-1)));
    const ops::GlaResult result = ops::gla(pass.tape(), q, pass.leaf("k"), pass.leaf("v"), pass.leaf("log_g"), scale,
                                           pass.leaf("s0"), true, chunk);
    pass.output("o", result.o);
    pass.output("s_out", result.state);
    all.push_back(pass.finish());
    if (chunk != 0) all.back().what = "chunk " + std::to_string(chunk);
  }
  return all;
}

/// With and without decays: where there are none, that leaf is empty.
std::vector<Results> run_delta_rule(const GoldenFile& file, const Stream& stream) {
  std::vector<Results> all;
  for (const std::int64_t chunk : {0, 8, 64}) {
    Pass pass(file, stream);
    const Tensor q = pass.leaf("q");
    const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(-1)));
    const ops::DeltaRuleResult result = ops::delta_rule(pass.tape(), q, pass.leaf("k"), pass.leaf("v"), pass.leaf("beta"),
                                                        pass.leaf("log_g"), scale, pass.leaf("s0"), true, chunk);
    pass.output("o", result.o);
    pass.output("s_out", result.state);
    all.push_back(pass.finish());
    if (chunk != 0) all.back().what = "chunk " + std::to_string(chunk);
  }
  return all;
}

/// `decays`: one per head, for all steps. `map` is applied to q and k.
template <class Map>
std::vector<Results> run_recurrence(const GoldenFile& file, const Stream& stream, bool normalise, const std::vector<double>& decays, const Map& map) {
  Pass pass(file, stream);
  Tape& tape = pass.tape();
  const Tensor q = pass.leaf("q"), k = pass.leaf("k"), v = pass.leaf("v"), projection = pass.constant("projection");
  const Tensor decay = decays.empty() ? pass.leaf("log_g") : tape.empty({q.size(2)}, Dtype::f64);
  if (!decays.empty()) fill(stream, decay, decays);
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(-1)));
  const ops::LinearAttentionResult result =
      ops::linear_attention(tape, map(tape, q, projection), map(tape, k, projection), v,
                            decay, scale, normalise, pass.leaf("s0"), pass.leaf("z0"), true);
  pass.output("o", result.o);
  pass.output("s_out", result.state);
  if (normalise) pass.output("z_out", result.sum);
  return {pass.finish()};
}

Tensor same(Tape&, const Tensor& x, const Tensor&) { return x; }

std::vector<Results> run_linear_attention(const GoldenFile& file, const Stream& stream) {
  return run_recurrence(file, stream, file.options.find("normalize")->as_bool(), {}, same);
}

std::vector<Results> run_linear_attention_maps(const GoldenFile& file, const Stream& stream) {
  const std::string& kind = file.options.find("feature_map")->as_string();
  return run_recurrence(file, stream, true, {}, [&](Tape& tape, const Tensor& x, const Tensor& projection) {
    if (kind == "relu") return ops::relu(tape, x);
    if (kind == "elu") return ops::elu_plus_one(tape, x);
    if (kind == "cosformer")
      return ops::cosine_features(tape, x, file.options.find("max_length")->as_integer(),
                                  file.options.find("offset")->as_integer());
    if (kind == "rfa")
      return ops::fourier_features(tape, ops::shared_head_linear(tape, ops::l2_norm(tape, x, 1e-6), projection, {}));
    const Tensor scaled = ops::scale(tape, x, std::pow(static_cast<double>(x.size(-1)), -0.25));
    return ops::positive_features(tape, ops::shared_head_linear(tape, scaled, projection, {}), scaled);
  });
}

std::vector<Results> run_retention(const GoldenFile& file, const Stream& stream) {
  std::vector<double> decay;
  for (std::int64_t h = 0; h < file.inputs.at("q").dims[2]; ++h)
    decay.push_back(std::log1p(-std::exp2(-5.0 - static_cast<double>(h))));
  return run_recurrence(file, stream, false, decay, same);
}

std::vector<Results> run_attention(const GoldenFile& file, const Stream& stream) {
  Pass pass(file, stream);
  const Tensor q = pass.leaf("q");
  const Json &scale = *file.options.find("scale"), &window = *file.options.find("window_size");
  ops::AttentionOptions options;
  options.scale = scale.is_null() ? 1.0 / std::sqrt(static_cast<double>(q.size(-1))) : scale.as_number();
  // forgetting_attention is always causal and knows no slopes.
  if (const Json* causal = file.options.find("causal")) options.causal = causal->as_bool();
  options.window = window.is_null() ? 0 : window.as_integer();
  if (const Json* given = file.options.find("alibi_slopes"); given != nullptr && !given->is_null()) {
    std::vector<double> slopes;
    for (const Json& slope : given->as_array()) slopes.push_back(slope.as_number());
    options.slopes = pass.tape().empty({q.size(2)}, Dtype::f64);
    fill(stream, options.slopes, slopes);
  }
  // In softmax_attention_bias there is a decay besides; in softmax_attention the leaf is empty.
  pass.output("o", ops::attention(pass.tape(), q, pass.leaf("k"), pass.leaf("v"), options, pass.leaf("log_f")));
  return {pass.finish()};
}

}  // namespace

void add_ops(UnitTable& table) {
  table["rms_norm"] = {run_rms_norm};
  table["layer_norm"] = {run_layer_norm};
  table["gated_rms_norm"] = {run_gated_rms_norm};
  table["l2_norm"] = {run_l2_norm};
  table["short_conv"] = {run_short_conv};
  table["linear"] = {run_linear};
  table["embedding"] = {run_embedding};
  table["swiglu"] = {run_swiglu};
  table["mlp_size"] = {run_mlp_size, false};
  table["cross_entropy"] = {run_cross_entropy};
  table["perplexity"] = {run_perplexity};
  table["gla"] = {run_gla};
  table["delta_rule"] = {run_delta_rule};
  table["gated_delta_rule"] = {run_delta_rule};
  table["linear_attention"] = {run_linear_attention};
  table["linear_attention_maps"] = {run_linear_attention_maps};
  table["retention"] = {run_retention};
  table["softmax_attention"] = {run_attention};
  table["softmax_attention_bias"] = {run_attention};
  table["forgetting_attention"] = {run_attention};
}

}  // namespace phasor::golden
