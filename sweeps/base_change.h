#pragma once

#include <string>

#include "core/plugin/registry.h"
#include "results/manifest.h"
#include "sweeps/expand.h"

namespace phasor::sweeps {

/// UserError with every difference when the trials of a folder are of another base experiment than those of the sweep: side by
/// side in one table they would be taken for the same. Paths that an axis sets in every cell do not count, nor do axes: new
/// values add cells. Nothing to say of a folder without a manifest, or with one of before bases were kept.
void require_same_base(const std::string& folder, const Sweep& sweep, const Registry& registry);

}  // namespace phasor::sweeps
