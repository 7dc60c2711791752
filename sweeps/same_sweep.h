#pragma once

#include <string>

#include "core/plugin/registry.h"
#include "results/manifest.h"
#include "sweeps/expand.h"

namespace phasor::sweeps {

/// UserError with every difference when a folder holds another sweep, or its trials are of another base experiment: the manifest
/// there would be replaced, and its trials count no more, or stand side by side with these in one table as if they were the same.
/// Another sweep has another name; or other axes, or rows or columns of which none is there, and no trial that is there. New
/// values of axes add cells and make none; paths of the base that an axis sets in every cell do not count. Nothing to say of a
/// folder without a manifest. Returns what is wrong with a damaged one, which is written anew; empty when nothing is.
std::string require_same_sweep(const std::string& folder, const Sweep& sweep, const Registry& registry);

}  // namespace phasor::sweeps
