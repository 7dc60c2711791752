#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/tape.h"
#include "core/nn/encoding.h"
#include "core/nn/mixer.h"
#include "core/nn/parameters.h"
#include "core/nn/state.h"
#include "core/plugin/registry.h"
#include "core/spec/fields.h"

namespace phasor {

/// Inner width of a SwiGLU when none is given: 2/3 of dim * ratio, rounded up to a multiple of 256 (layers.md 1).
std::int64_t swiglu_width(std::int64_t dim, std::int64_t ratio);

struct MlpOptions {
  std::optional<std::int64_t> width;  // inner; from the ratio when not set
  std::int64_t ratio = 4;
  void fields(FieldList&);
};

/// Everything around the mixer: the same for every backbone and encoding, so that an ablation changes one thing.
struct ModelOptions {
  std::int64_t dim = 128;
  std::int64_t layers = 2;
  double init_std = 0.02;
  double norm_eps = 1e-6;
  bool tie_head = false;
  MlpOptions mlp;
  void fields(FieldList&);  // without the backbone and the encoding, which the experiment adds
};

/// A backbone and an encoding as chosen by an experiment.
struct MixerChoice {
  const BackbonePlugin* backbone = nullptr;
  const Options* backbone_options = nullptr;
  const EncodingPlugin* encoding = nullptr;
  const Options* encoding_options = nullptr;
};

/// Why a choice cannot be built: the section of the experiment and the reason. Cheap; nothing is allocated.
struct Misfit {
  std::string path, reason;
};
std::optional<Misfit> find_misfit(const ModelOptions&, const MixerChoice&);

/// ids -> embedding -> layers x (x += mixer(rms_norm(x)); x += swiglu(rms_norm(x))) -> rms_norm -> head (layers.md 2).
/// Parameters: embeddings.weight, layers.i.{attn_norm.weight, attn.*, encoding.*, mlp_norm.weight,
/// mlp.{gate,up,down}_proj.weight}, norm.weight, lm_head.weight.
class Model {
 public:
  /// Declares all parameters. Throws UserError when there is a misfit.
  Model(const ModelOptions&, std::int64_t vocabulary, const MixerChoice&, ParameterStore&);
  ~Model();

  /// ids i32 [batch, time] -> [batch, time, dim], after the final norm. `states`: one per layer, or null for whole
  /// sequences.
  Tensor hidden(Tape&, const Tensor& ids, const SequenceContext&, std::vector<State>* states = nullptr) const;
  /// [rows.., dim] -> logits [rows.., vocabulary]. Called at scored positions only when training.
  Tensor head(Tape&, const Tensor& hidden) const;

  std::int64_t layers() const { return static_cast<std::int64_t>(layers_.size()); }

 private:
  struct Layer;
  ModelOptions options_;
  std::vector<std::unique_ptr<Layer>> layers_;
  Parameter embedding_, norm_, head_;
};

}  // namespace phasor
