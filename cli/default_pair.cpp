#include "cli/default_pair.h"

#include "core/nn/probe.h"

namespace phasor::cli {

DefaultPair::DefaultPair(const BackbonePlugin& mixing, const EncodingPlugin& position)
    : backbone(&mixing),
      encoding(&position),
      backbone_options(mixing.options()),
      encoding_options(position.options()) {
  DataShape data(1);
  data.max_time = probe_time;
  for (const std::int64_t width : {16, 32, 64, 128, 256}) {
    ModelOptions model;
    model.dim = dim = width;
    misfit = find_misfit(model, data, choice());
    if (!misfit) return;
  }
}

}  // namespace phasor::cli
