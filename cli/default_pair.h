#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/nn/model.h"
#include "core/plugin/registry.h"

namespace phasor::cli {

/// A backbone and an encoding at their default options, in the narrowest of some small models that takes both.
struct DefaultPair {
  /// What a plugin throws is passed on.
  DefaultPair(const BackbonePlugin&, const EncodingPlugin&);
  MixerChoice choice() const { return {backbone, backbone_options.get(), encoding, encoding_options.get(), nullptr}; }

  const BackbonePlugin* backbone;
  const EncodingPlugin* encoding;
  std::unique_ptr<Options> backbone_options, encoding_options;
  std::int64_t dim = 0;          // width of the model, the largest that was tried where none fits
  std::optional<Misfit> misfit;  // of an experiment with these two: why no width fits
};

}  // namespace phasor::cli
