#pragma once

#include "core/plugin/registry.h"
#include "core/spec/json.h"

namespace phasor::sweeps {

/// JSON Schema (2020-12) of experiment files and of sweep files, with the plugins of a registry.
Json experiment_schema(const Registry& registry);
Json sweep_schema(const Registry& registry);

}  // namespace phasor::sweeps
