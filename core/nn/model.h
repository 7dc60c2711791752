#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/graph/tape.h"
#include "core/nn/encoding.h"
#include "core/nn/mixer.h"
#include "core/nn/parameters.h"
#include "core/nn/state.h"
#include "core/nn/task.h"
#include "core/plugin/registry.h"
#include "core/spec/fields.h"

namespace phasor {

/// Inner width of a SwiGLU when none is given: 2/3 of dim * ratio, rounded up to a multiple of 256 (layers.md 1).
std::int64_t swiglu_width(std::int64_t dim, std::int64_t ratio);

struct MlpOptions {
  std::string kind = "swiglu";        // swiglu, gelu (two matrices with biases), identity, none
  std::optional<std::int64_t> width;  // inner; from the ratio when not set
  std::int64_t ratio = 4;
  void fields(FieldList&);
};

struct EmbeddingOptions {
  std::string kind = "learned";  // sphere: frozen random rows of length one, read and written through learned matrices
  double dropout = 0.0;
  void fields(FieldList&);
};

/// Everything around the mixer: the same for every backbone and encoding, so that an ablation changes one thing.
struct ModelOptions {
  std::int64_t dim = 128;
  std::int64_t layers = 2;
  std::string pattern = "a";  // a letter per layer, repeated: a = backbone, b = other_backbone
  double init_std = 0.02;
  std::string residual_init = "plain";  // scaled: o_proj, down_proj and fc2 start at init_std / sqrt(2 layers)
  std::string norm = "rms";             // rms, layer
  double norm_eps = 1e-6;
  bool tie_head = false;
  EmbeddingOptions embedding;
  MlpOptions mlp;
  void fields(FieldList&);  // without the backbones and encodings, which the experiment adds
  /// The letter of a layer.
  char letter(std::int64_t layer) const { return pattern[static_cast<std::size_t>(layer) % pattern.size()]; }
};

/// A backbone and an encoding as chosen by an experiment.
struct MixerChoice {
  const BackbonePlugin* backbone = nullptr;
  const Options* backbone_options = nullptr;
  const EncodingPlugin* encoding = nullptr;
  const Options* encoding_options = nullptr;
  const MixerChoice* other = nullptr;  // of the layers that the pattern calls b; null: there are none
};

/// What the data ask of a model.
struct DataShape {
  std::int64_t vocabulary = 0;
  Classes classes;            // what the head tells apart
  std::int64_t streams = 1;   // token ids per position
  std::int64_t max_time = 0;  // longest row in tokens; 0 = not known
  Reading reading = Reading::positions;
  bool in_parts = false;      // a row is several documents, or is continued from a prompt
  explicit DataShape(std::int64_t tokens) : vocabulary(tokens), classes{0, tokens} {}
  explicit DataShape(const Task&);
};

/// Why a choice cannot be built: the section of the experiment and the reason. Cheap; nothing is allocated.
struct Misfit {
  std::string path, reason;
};
std::optional<Misfit> find_misfit(const ModelOptions&, const DataShape&, const MixerChoice&);

/// ids -> embedding -> layers x (x += mixer(norm(x)); x += mlp(norm(x))) -> norm -> head (layers.md 2). The mlp `identity`
/// is the reference's way to leave it out, x += norm(x); `none` leaves x as it is. Several ids per position are looked up in
/// the same table, put side by side and mapped to the width by a matrix.
/// Reading::last: between layers and norm stands the decoder of an auto-encoder (tasks.md 2.7). With z the state of the last
/// position, position p goes on as z + row p of a constant table of sines and cosines, then, twice, gelu(linear(norm(y))).
/// Parameters: embeddings.weight, [in_proj.*], [encoding.*], layers.i.{attn_norm.*, attn.*, encoding.*, mlp_norm.*, mlp.*},
/// [decoder.positions, decoder.i.{norm.*, weight, bias}], norm.*, [head_proj.*], [lm_head.weight].
class Model {
 public:
  /// Declares all parameters. Throws UserError when there is a misfit.
  Model(const ModelOptions&, const DataShape&, const MixerChoice&, ParameterStore&);
  ~Model();

  /// One tensor of ids per stream, i32 [batch, time] -> [batch, time, dim], after the final norm. `states`: one per layer,
  /// or null for whole sequences.
  Tensor hidden(Tape&, std::span<const Tensor> ids, const SequenceContext&, std::vector<State>* states = nullptr) const;
  Tensor hidden(Tape& tape, const Tensor& ids, const SequenceContext& context, std::vector<State>* states = nullptr) const {
    return hidden(tape, std::span(&ids, 1), context, states);
  }
  /// [rows.., dim] -> logits [rows.., classes].
  Tensor head(Tape&, const Tensor& hidden) const;
  /// Logits [count, classes] at some positions of the rows: what head(hidden()) has there. `index`: i32 [count], counted over
  /// batch and time; below 0 a row that stands for no position. The layers up to the last mixer see every position; what
  /// follows it treats each position by itself and runs at these alone.
  Tensor logits(Tape&, std::span<const Tensor> ids, const SequenceContext&, const Tensor& index, std::vector<State>* states = nullptr) const;

  std::int64_t layers() const { return static_cast<std::int64_t>(layers_.size()); }

 private:
  struct Norm {
    Parameter weight, bias;  // bias of a layer norm
  };
  struct Mlp {
    std::int64_t width = 0;
    Norm norm;
    Parameter in, in_bias, out, out_bias;  // of a SwiGLU: gate and up side by side, no biases
  };
  struct Layer;
  struct DecoderLayer {
    Norm norm;
    Parameter weight, bias;  // [dim, dim], [dim]
  };
  Norm make_norm(const ParameterScope&, const std::string& name) const;
  Mlp make_mlp(const ParameterScope&) const;
  void make_embedding(const ParameterScope&, const DataShape&);
  void make_decoder(const ParameterScope&, const DataShape&);
  void make_head(const ParameterScope&, const DataShape&);
  Tensor normed(Tape&, const Tensor& x, const Norm&) const;
  Tensor after_mlp(Tape&, const Tensor& x, const Mlp&) const;
  Tensor decoded(Tape&, const Tensor& x) const;
  Tensor embedded(Tape&, std::span<const Tensor> ids, const SequenceContext&, State*) const;
  Tensor mixed(Tape&, std::span<const Tensor> ids, const SequenceContext&, std::vector<State>*) const;
  Tensor finished(Tape&, const Tensor& x) const;

  ModelOptions options_;
  std::unique_ptr<Encoding> embedding_encoding_;  // only when the encoding acts on embeddings
  std::vector<std::unique_ptr<Layer>> layers_;
  Parameter embedding_, in_bias_, head_proj_, head_bias_, head_;
  std::vector<Parameter> in_;  // one matrix [dim, dim] per stream; empty when ids are one and learned
  Parameter positions_;                // [max_time, dim]; of the decoder, as is what follows
  std::vector<DecoderLayer> decoder_;  // empty: predictions read their own position
  Norm norm_;
};

}  // namespace phasor
