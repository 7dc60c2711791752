#include "core/nn/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/ops/dropout/dropout.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/embedding/embedding.h"
#include "core/ops/gather_rows/gather_rows.h"
#include "core/ops/layer_norm/layer_norm.h"
#include "core/ops/linear/linear.h"
#include "core/ops/rms_norm/rms_norm.h"
#include "core/ops/spread_last/spread_last.h"
#include "core/ops/swiglu/swiglu.h"

namespace phasor {

std::int64_t swiglu_width(std::int64_t dim, std::int64_t ratio) {
  const std::int64_t width = dim * ratio * 2 / 3;
  return (width + 255) / 256 * 256;
}

void MlpOptions::fields(FieldList& f) {
  f.choice("kind", kind, {"swiglu", "gelu", "identity", "none"},
           "gelu: two matrices with biases; identity: x + norm(x), the zoology reference's block without MLP; none: only the mixer");
  f.integer("width", width, "inner width; not set: from the ratio", Range::between(1, 1 << 22));
  f.integer("ratio", ratio, "inner width = 2/3 * dim * ratio, rounded up to a multiple of 256; of a gelu dim * ratio",
            Range::between(1, 64));
}

void EmbeddingOptions::fields(FieldList& f) {
  f.choice("kind", kind, {"learned", "sphere"},
           "sphere: a frozen table of random rows of length one, read and scored through learned matrices");
  f.number("dropout", dropout, "share of the embedded elements that training drops", {0.0, 1.0, false, true});
}

void ModelOptions::fields(FieldList& f) {
  f.integer("dim", dim, "width of the residual stream", Range::between(1, 1 << 20));
  f.integer("layers", layers, "number of blocks (mixer + MLP)", Range::between(1, 10000));
  f.text("pattern", pattern, "which mixer each layer has, repeated over the depth: a = backbone, b = other_backbone, e.g. ba");
  f.number("init_std", init_std, "standard deviation of linear, convolution and embedding weights at the start",
           Range::at_least(0.0));
  f.choice("residual_init", residual_init, {"plain", "scaled"},
           "scaled: matrices that write to the residual stream start at init_std / sqrt(2 layers)");
  f.choice("norm", norm, {"rms", "layer"}, "norms of the blocks and before the head: RMSNorm, or LayerNorm with bias");
  f.number("norm_eps", norm_eps, "added to the mean square (or variance) in every block norm", Range::above(0.0));
  f.boolean("tie_head", tie_head, "the output head shares the embedding's matrix");
  f.object("embedding", embedding, "how tokens enter");
  f.object("mlp", mlp, "the MLP of every block");
}

DataShape::DataShape(const Task& task)
    : vocabulary(task.vocabulary()), classes(task.classes()), streams(task.streams()), reading(task.reading()), in_parts(task.packs()) {
  for (const Split split : {Split::train, Split::valid, Split::test})
    for (const Slice& slice : task.slices(split)) {
      max_time = std::max(max_time, task.tokens(slice));
      in_parts = in_parts || task.prompt(slice) > 0;
    }
}

struct Model::Layer {
  Norm attn_norm;
  std::unique_ptr<Encoding> encoding;
  std::unique_ptr<Mixer> mixer;
  Mlp mlp;
};

namespace {

MixerShape shape_of(const MixerChoice& choice, const ModelOptions& options, const DataShape& data) {
  MixerShape shape = choice.backbone->shape(*choice.backbone_options, options.dim);
  shape.max_time = data.max_time;
  return shape;
}

std::unique_ptr<Encoding> make_encoding(const MixerChoice& choice, const MixerShape& shape, const ParameterScope& scope) {
  return choice.encoding->make(*choice.encoding_options, shape, scope);
}

/// Known only from an instance.
Hook hook_of(const MixerChoice& choice, const MixerShape& shape) {
  ParameterStore scratch;
  return make_encoding(choice, shape, ParameterScope(scratch, "", 0.0))->hook();
}

/// In the layers of a model whose encoding acts on the embeddings.
class NoEncoding final : public Encoding {
  Hook hook() const override { return Hook::none; }
};

/// `prefix`: "" for the layers called a, "other_" for b.
std::optional<Misfit> misfit_of(const ModelOptions& options, const DataShape& data, const MixerChoice& choice,
                                const std::string& prefix) {
  if (const auto reason = choice.backbone->refuses(*choice.backbone_options, options.dim))
    return Misfit{fmt::format("model.{}backbone", prefix),
                  fmt::format("{} does not fit model.dim {}: {}", choice.backbone->info.name, options.dim, *reason)};
  const auto pair_misfit = [&](const std::string& reason) {
    return Misfit{fmt::format("model.{}encoding", prefix),
                  fmt::format("{} does not fit the backbone {}: {}", choice.encoding->info.name, choice.backbone->info.name, reason)};
  };
  const MixerShape shape = shape_of(choice, options, data);
  if (const auto reason = choice.encoding->refuses(*choice.encoding_options, shape)) return pair_misfit(*reason);
  const Hook hook = hook_of(choice, shape);
  if (hook == Hook::embedding && prefix.empty()) return std::nullopt;
  if (hook == Hook::embedding) return pair_misfit("it acts on the embeddings, once: give it as model.encoding");
  if (!contains(choice.backbone->offers(*choice.backbone_options), hook))
    return pair_misfit("the backbone has no place where it could act");
  return std::nullopt;
}

std::optional<Misfit> misfit_of_reading(const ModelOptions& options, const DataShape& data) {
  if (data.reading != Reading::last) return std::nullopt;
  if (data.in_parts)
    return Misfit{"task", "it reads rows at their last position, so they cannot be packed or be continued from a prompt"};
  if (options.dim % 2 != 0 || options.dim < 4)
    return Misfit{"model.dim", fmt::format("{}, expected an even number from 4: the task is read through sines and cosines", options.dim)};
  return std::nullopt;
}

}  // namespace

std::optional<Misfit> find_misfit(const ModelOptions& options, const DataShape& data, const MixerChoice& choice) {
  if (options.pattern.empty() || options.pattern.find_first_not_of("ab") != std::string::npos)
    return Misfit{"model.pattern", fmt::format("\"{}\", expected letters a (backbone) and b (other_backbone)", options.pattern)};
  const auto used = [&](char letter) {
    for (std::int64_t i = 0; i < options.layers; ++i)
      if (options.letter(i) == letter) return true;
    return false;
  };
  if (!used('a')) return Misfit{"model.pattern", fmt::format("no layer of {} is called a: model.backbone would not be used", options.layers)};
  if (used('b') && choice.other == nullptr)
    return Misfit{"model.pattern", "layers are called b, but model.other_backbone is none"};
  if (!used('b') && choice.other != nullptr)
    return Misfit{"model.pattern", "no layer is called b, so model.other_backbone would not be used"};
  if (options.embedding.kind == "sphere" && options.tie_head)
    return Misfit{"model.tie_head", "a frozen embedding is scored through a matrix of its own: there is nothing to tie"};
  if (auto misfit = misfit_of_reading(options, data)) return misfit;
  if (auto misfit = misfit_of(options, data, choice, "")) return misfit;
  return choice.other == nullptr ? std::nullopt : misfit_of(options, data, *choice.other, "other_");
}

Model::Norm Model::make_norm(const ParameterScope& scope, const std::string& name) const {
  Norm norm;
  norm.weight = scope.ones(name + ".weight", {options_.dim});
  if (options_.norm == "layer") norm.bias = scope.zeros(name + ".bias", {options_.dim});
  return norm;
}

Model::Mlp Model::make_mlp(const ParameterScope& scope) const {
  Mlp mlp;
  const MlpOptions& o = options_.mlp;
  if (o.kind == "none") return mlp;
  mlp.norm = make_norm(scope, "mlp_norm");
  const std::int64_t dim = options_.dim;
  if (o.kind == "swiglu") {
    mlp.width = o.width.value_or(swiglu_width(dim, o.ratio));
    const Parameter gate = scope.weight("mlp.gate_proj.weight", mlp.width, dim);
    const Parameter up = scope.weight("mlp.up_proj.weight", mlp.width, dim);
    mlp.in = ParameterStore::stack({gate, up});
    mlp.out = scope.weight("mlp.down_proj.weight", dim, mlp.width);
  } else if (o.kind == "gelu") {
    mlp.width = o.width.value_or(dim * o.ratio);
    mlp.in = scope.weight("mlp.fc1.weight", mlp.width, dim);
    mlp.in_bias = scope.zeros("mlp.fc1.bias", {mlp.width});
    mlp.out = scope.weight("mlp.fc2.weight", dim, mlp.width);
    mlp.out_bias = scope.zeros("mlp.fc2.bias", {dim});
  }
  return mlp;
}

void Model::make_embedding(const ParameterScope& root, const DataShape& data) {
  const bool sphere = options_.embedding.kind == "sphere";
  const Shape table{data.vocabulary, options_.dim};
  embedding_ = sphere ? root.add("embeddings.weight", table, Init::sphere(), true)
                      : root.add("embeddings.weight", table, Init::normal(options_.init_std));
  if (data.streams == 1 && !sphere) return;
  for (std::int64_t i = 0; i < data.streams; ++i)
    in_.push_back(root.weight(fmt::format("in_proj.{}.weight", i), options_.dim, options_.dim));
  in_bias_ = root.zeros("in_proj.bias", {options_.dim});
}

void Model::make_decoder(const ParameterScope& root, const DataShape& data) {
  if (data.reading != Reading::last) return;
  PHASOR_CHECK(data.max_time > 0, "a decoder is made for rows of a known length");
  const std::int64_t dim = options_.dim;
  positions_ = root.add("decoder.positions", {data.max_time, dim}, Init::sin_cos(), true);
  for (int i = 0; i < 2; ++i) {
    const ParameterScope scope = root.child(fmt::format("decoder.{}", i));
    const Norm norm = make_norm(scope, "norm");
    decoder_.push_back({norm, scope.weight("weight", dim, dim), scope.zeros("bias", {dim})});
  }
}

void Model::make_head(const ParameterScope& root, const DataShape& data) {
  const bool sphere = options_.embedding.kind == "sphere";
  if (sphere) {
    head_proj_ = root.weight("head_proj.weight", options_.dim, options_.dim);
    head_bias_ = root.zeros("head_proj.bias", {options_.dim});
  }
  head_ = sphere || options_.tie_head ? ParameterStore::rows(embedding_, data.classes.first, data.classes.count)
                                      : root.weight("lm_head.weight", data.classes.count, options_.dim);
}

Model::Model(const ModelOptions& options, const DataShape& data, const MixerChoice& choice, ParameterStore& store)
    : options_(options) {
  if (const auto misfit = find_misfit(options, data, choice)) throw UserError(misfit->path + ": " + misfit->reason);
  const ParameterScope root(store, "", options.init_std);
  make_embedding(root, data);
  const MixerShape shape = shape_of(choice, options, data);
  if (hook_of(choice, shape) == Hook::embedding) embedding_encoding_ = make_encoding(choice, shape, root.child("encoding"));
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const bool other = options.letter(i) == 'b';
    const MixerChoice& own = other ? *choice.other : choice;
    const ParameterScope scope = root.child(fmt::format("layers.{}", i));
    auto layer = std::make_unique<Layer>();
    layer->attn_norm = make_norm(scope, "attn_norm");
    layer->mixer = own.backbone->make(*own.backbone_options, options.dim, options.norm_eps, scope.child("attn"));
    if (embedding_encoding_ != nullptr && !other)
      layer->encoding = std::make_unique<NoEncoding>();
    else
      layer->encoding = make_encoding(own, shape_of(own, options, data), scope.child("encoding"));
    layer->mlp = make_mlp(scope);
    layers_.push_back(std::move(layer));
  }
  make_decoder(root, data);
  norm_ = make_norm(root, "norm");
  make_head(root, data);
  if (options.residual_init == "scaled")
    store.scale_init({"o_proj.weight", "down_proj.weight", "fc2.weight"}, 1.0 / std::sqrt(2.0 * static_cast<double>(options.layers)));
}

Model::~Model() = default;

Tensor Model::normed(Tape& tape, const Tensor& x, const Norm& norm) const {
  if (options_.norm == "layer") return ops::layer_norm(tape, x, norm.weight(), norm.bias(), options_.norm_eps);
  return ops::rms_norm(tape, x, norm.weight(), options_.norm_eps);
}

Tensor Model::after_mlp(Tape& tape, const Tensor& x, const Mlp& mlp) const {
  if (options_.mlp.kind == "none") return x;
  const Tensor read = normed(tape, x, mlp.norm);
  if (options_.mlp.kind == "identity") return ops::add(tape, x, read);
  Tensor inner = ops::linear(tape, read, mlp.in(), mlp.in_bias());
  if (options_.mlp.kind == "gelu") {
    inner = ops::gelu(tape, inner);
  } else {
    const auto gate_up = tape.split(inner, std::array{mlp.width, mlp.width});
    inner = ops::swiglu(tape, gate_up[0], gate_up[1]);
  }
  return ops::add(tape, x, ops::linear(tape, inner, mlp.out(), mlp.out_bias()));
}

Tensor Model::embedded(Tape& tape, std::span<const Tensor> ids, const SequenceContext& context, State* state) const {
  PHASOR_CHECK(ids.size() == std::max<std::size_t>(1, in_.size()), "one tensor of ids per stream");
  Tensor x;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Tensor rows = ops::embedding(tape, ids[i], embedding_());
    if (in_.empty()) {
      x = rows;
      continue;
    }
    const Tensor part = ops::linear(tape, rows, in_[i](), i == 0 ? in_bias_() : Tensor());
    x = x ? ops::add(tape, x, part) : part;
  }
  if (embedding_encoding_ != nullptr) x = embedding_encoding_->on_embedding(tape, x, context, state);
  if (context.dropout) x = ops::dropout(tape, x, options_.embedding.dropout, *context.dropout, "embedding");
  return x;
}

/// What the positions of a row are in its last one, [batch, time, dim] -> the same.
Tensor Model::decoded(Tape& tape, const Tensor& x) const {
  if (decoder_.empty()) return x;
  Tensor y = ops::spread_last(tape, x, positions_());
  for (const DecoderLayer& layer : decoder_)
    y = ops::gelu(tape, ops::linear(tape, normed(tape, y, layer.norm), layer.weight(), layer.bias()));
  return y;
}

/// What the last layer's MLP reads, [batch, time, dim].
Tensor Model::mixed(Tape& tape, std::span<const Tensor> ids, const SequenceContext& context, std::vector<State>* states) const {
  PHASOR_CHECK(states == nullptr || states->size() == layers_.size(), "one state per layer");
  PHASOR_CHECK(decoder_.empty() || (states == nullptr && !context.starts), "rows that are read at their last position come whole");
  const auto enter = [&](std::int64_t layer) {
    if (context.inspector != nullptr) context.inspector->enter(layer);
  };
  enter(-1);
  Tensor x = embedded(tape, ids, context, states == nullptr ? nullptr : &states->front());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = *layers_[i];
    if (i > 0) x = after_mlp(tape, x, layers_[i - 1]->mlp);
    enter(static_cast<std::int64_t>(i));
    State* state = states == nullptr ? nullptr : &(*states)[i];
    x = ops::add(tape, x, layer.mixer->forward(tape, normed(tape, x, layer.attn_norm), *layer.encoding, context, state));
  }
  return x;
}

/// What the head reads, from what the last layer's MLP reads; [rows.., dim], without a decoder each row by itself.
Tensor Model::finished(Tape& tape, const Tensor& x) const {
  return normed(tape, decoded(tape, after_mlp(tape, x, layers_.back()->mlp)), norm_);
}

Tensor Model::hidden(Tape& tape, std::span<const Tensor> ids, const SequenceContext& context, std::vector<State>* states) const {
  return finished(tape, mixed(tape, ids, context, states));
}

Tensor Model::logits(Tape& tape, std::span<const Tensor> ids, const SequenceContext& context, const Tensor& index, std::vector<State>* states) const {
  Tensor x = mixed(tape, ids, context, states);
  if (decoder_.empty()) x = ops::gather_rows(tape, x, index);
  x = finished(tape, x);
  if (!decoder_.empty()) x = ops::gather_rows(tape, x, index);
  return head(tape, x);
}

Tensor Model::head(Tape& tape, const Tensor& hidden) const {
  const Tensor read = head_proj_ ? ops::linear(tape, hidden, head_proj_(), head_bias_()) : hidden;
  return ops::linear(tape, read, head_(), {});
}

}  // namespace phasor
