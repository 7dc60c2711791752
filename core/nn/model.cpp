#include "core/nn/model.h"

#include <fmt/format.h>

#include <array>

#include "core/ops/elementwise/elementwise.h"
#include "core/ops/embedding/embedding.h"
#include "core/ops/linear/linear.h"
#include "core/ops/rms_norm/rms_norm.h"
#include "core/ops/swiglu/swiglu.h"

namespace phasor {

std::int64_t swiglu_width(std::int64_t dim, std::int64_t ratio) {
  const std::int64_t width = dim * ratio * 2 / 3;
  return (width + 255) / 256 * 256;
}

void MlpOptions::fields(FieldList& f) {
  f.integer("width", width, "inner width of the SwiGLU; not set: from the ratio", Range::between(1, 1 << 22));
  f.integer("ratio", ratio, "inner width = 2/3 * dim * ratio, rounded up to a multiple of 256", Range::between(1, 64));
}

void ModelOptions::fields(FieldList& f) {
  f.integer("dim", dim, "width of the residual stream", Range::between(1, 1 << 20));
  f.integer("layers", layers, "number of blocks (mixer + SwiGLU)", Range::between(1, 10000));
  f.number("init_std", init_std, "standard deviation of linear, convolution and embedding weights at the start",
           Range::at_least(0.0));
  f.number("norm_eps", norm_eps, "added to the mean square in every block norm", Range::above(0.0));
  f.boolean("tie_head", tie_head, "the output head shares the embedding's matrix");
  f.object("mlp", mlp, "the SwiGLU of every block");
}

struct Model::Layer {
  Parameter attn_norm, mlp_norm, gate_up, down;
  std::int64_t mlp_width = 0;
  std::unique_ptr<Encoding> encoding;
  std::unique_ptr<Mixer> mixer;
};

namespace {

Misfit pair_misfit(const MixerChoice& choice, const std::string& reason) {
  return {"model.encoding", fmt::format("{} does not fit the backbone {}: {}", choice.encoding->info.name,
                                        choice.backbone->info.name, reason)};
}

}  // namespace

std::optional<Misfit> find_misfit(const ModelOptions& options, const MixerChoice& choice) {
  if (const auto reason = choice.backbone->refuses(*choice.backbone_options, options.dim))
    return Misfit{"model.backbone", fmt::format("{} does not fit model.dim {}: {}", choice.backbone->info.name,
                                                options.dim, *reason)};
  const MixerShape shape = choice.backbone->shape(*choice.backbone_options, options.dim);
  if (const auto reason = choice.encoding->refuses(*choice.encoding_options, shape)) return pair_misfit(choice, *reason);
  ParameterStore scratch;
  const auto encoding = choice.encoding->make(*choice.encoding_options, shape, ParameterScope(scratch, "", options.init_std));
  if (!contains(choice.backbone->offers(*choice.backbone_options), encoding->hook()))
    return pair_misfit(choice, "the backbone has no place where it could act");
  return std::nullopt;
}

Model::Model(const ModelOptions& options, std::int64_t vocabulary, const MixerChoice& choice, ParameterStore& store)
    : options_(options) {
  if (const auto misfit = find_misfit(options, choice)) throw UserError(misfit->path + ": " + misfit->reason);
  const MixerShape shape = choice.backbone->shape(*choice.backbone_options, options.dim);
  const ParameterScope root(store, "", options.init_std);
  embedding_ = root.add("embeddings.weight", {vocabulary, options.dim}, Init::normal(options.init_std));
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const ParameterScope scope = root.child(fmt::format("layers.{}", i));
    auto layer = std::make_unique<Layer>();
    layer->attn_norm = scope.ones("attn_norm.weight", {options.dim});
    layer->mixer = choice.backbone->make(*choice.backbone_options, options.dim, options.norm_eps, scope.child("attn"));
    layer->encoding = choice.encoding->make(*choice.encoding_options, shape, scope.child("encoding"));
    layer->mlp_norm = scope.ones("mlp_norm.weight", {options.dim});
    layer->mlp_width = options.mlp.width ? *options.mlp.width : swiglu_width(options.dim, options.mlp.ratio);
    const Parameter gate = scope.weight("mlp.gate_proj.weight", layer->mlp_width, options.dim);
    const Parameter up = scope.weight("mlp.up_proj.weight", layer->mlp_width, options.dim);
    layer->gate_up = ParameterStore::stack({gate, up});
    layer->down = scope.weight("mlp.down_proj.weight", options.dim, layer->mlp_width);
    layers_.push_back(std::move(layer));
  }
  norm_ = root.ones("norm.weight", {options.dim});
  head_ = options.tie_head ? embedding_ : root.weight("lm_head.weight", vocabulary, options.dim);
}

Model::~Model() = default;

Tensor Model::hidden(Tape& tape, const Tensor& ids, const SequenceContext& context, std::vector<State>* states) const {
  PHASOR_CHECK(states == nullptr || states->size() == layers_.size(), "one state per layer");
  Tensor x = ops::embedding(tape, ids, embedding_());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = *layers_[i];
    State* state = states == nullptr ? nullptr : &(*states)[i];
    const Tensor mixed = layer.mixer->forward(tape, ops::rms_norm(tape, x, layer.attn_norm(), options_.norm_eps),
                                              *layer.encoding, context, state);
    x = ops::add(tape, x, mixed);
    const Tensor normed = ops::rms_norm(tape, x, layer.mlp_norm(), options_.norm_eps);
    const std::array widths = {layer.mlp_width, layer.mlp_width};
    const auto gate_up = tape.split(ops::linear(tape, normed, layer.gate_up(), {}), widths);
    x = ops::add(tape, x, ops::linear(tape, ops::swiglu(tape, gate_up[0], gate_up[1]), layer.down(), {}));
  }
  return ops::rms_norm(tape, x, norm_(), options_.norm_eps);
}

Tensor Model::head(Tape& tape, const Tensor& hidden) const { return ops::linear(tape, hidden, head_(), {}); }

}  // namespace phasor
