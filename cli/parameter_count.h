#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/spec.h"
#include "results/record.h"

namespace phasor::cli {

struct ModuleCount {
  std::string name;  // "layers.0.attn"
  std::int64_t count = 0, frozen = 0;
  std::vector<ModuleCount> parts;  // of an encoding: "temperature"
};

/// Parameters of an experiment's model, counted from their declarations: nothing is allocated.
struct ParameterCount {
  std::int64_t total = 0, frozen = 0;
  std::vector<ModuleCount> modules;          // in the order of the model
  std::vector<results::ParameterInfo> list;  // every parameter, with whether it decays
  std::optional<std::int64_t> nope_total;    // the same model without positions; nothing when there is no plugin `nope`
};
ParameterCount count_parameters(const ExperimentSpec& spec);

/// Modules of the first layer stand for all when the layers are alike.
bool layers_alike(const ParameterCount& count, std::int64_t layers);

}  // namespace phasor::cli
