#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/plugin/registry.h"
#include "results/spectra.h"

namespace phasor {

/// Which row of the evaluation data is read.
struct SpectraRow {
  std::string split = "valid";         // or test
  std::optional<std::int64_t> length;  // of the slice; not set: the first one
  std::int64_t row = 0;
};

/// What the layers of a checkpoint's model show (Inspector in core/nn/state.h) along one row, in double precision whatever it was
/// trained in. UserError when the file is no checkpoint or is damaged, when there is no such row, or when no layer has
/// temperatures, phases or gates.
results::Spectra spectra_of_checkpoint(const std::string& path, const Registry& registry, const SpectraRow& which);

}  // namespace phasor
