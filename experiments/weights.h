#pragma once

#include <string>
#include <vector>

#include "core/nn/parameters.h"
#include "core/plugin/registry.h"

namespace phasor {

/// A trained parameter as other programs know it.
struct NamedWeight {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// The name and shape that flash-linear-attention gives a parameter of a model with this backbone, as a model for
/// language modelling there has it: "layers.0.attn.q_conv1d.weight" [channels, taps] is
/// "model.layers.0.attn.q_conv1d.weight" [channels, 1, taps]. What has no counterpart there (encodings, decoders) keeps
/// its own name below "model.".
NamedWeight exported_weight(const ParameterEntry& entry, const std::string& backbone, bool output_gate);

/// The parameters of a checkpoint (experiments/checkpoint.h) as a safetensors file: f32 or f64 as they were trained, in
/// the order of their declaration, frozen ones too; its metadata are the trial's id and its spec. UserError when the
/// file is no checkpoint, is damaged, or holds a model that the plugins of the registry do not build.
std::string safetensors_of_checkpoint(const std::string& path, const Registry& registry);

}  // namespace phasor
