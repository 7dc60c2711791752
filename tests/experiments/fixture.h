#pragma once

#include <string>

#include "core/plugin/loader.h"
#include "core/plugin/registry.h"
#include "experiments/spec.h"

namespace phasor {

/// The shipped plugins, loaded once per test binary.
inline const Registry& shipped_plugins() {
  static const Registry* const registry = [] {
    auto* made = new Registry;
    for (const PluginFile& file : load_plugins(*made, PHASOR_PLUGIN_FOLDER))
      if (!file.problem.empty()) throw std::runtime_error(file.path + ": " + file.problem);
    return made;
  }();
  return *registry;
}

/// A small experiment; `patch` is merged over it.
inline Json small_experiment(const std::string& patch = "{}") {
  Document base = Document::parse(R"({
    "task": {"name": "state_tracking", "group": "S2",
             "train": {"rows": 200, "length": 10}, "valid": {"rows": 20, "length": 10},
             "test": {"rows": 30, "lengths": [10, 15]}},
    "model": {"dim": 16, "layers": 2, "init_std": 0.2, "mlp": {"width": 24},
              "backbone": {"name": "gla", "heads": 2, "expand_k": 1.0, "short_conv": 4},
              "encoding": {"name": "selective_rope", "projection": {"rank": 4}, "bias": true}},
    "optimizer": {"name": "adamw", "lr": 0.01, "clip": 1.0},
    "train": {"steps": 6, "batch": 10}
  })", "small");
  base.require_none();
  Document over = Document::parse(patch, "patch");
  over.require_none();
  merge(base.value(), over.value());
  return base.value();
}

/// Reads the value into the spec; every mistake is an exception.
inline void read_spec(ExperimentSpec& spec, const Json& value) {
  Document document = Document::parse(value.pretty(), "spec");
  spec.read(document);
  document.require_none();
}

}  // namespace phasor
