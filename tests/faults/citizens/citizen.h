#pragma once

#include "core/plugin/manifest.h"

namespace citizens {

/// An encoding that does nothing, for libraries that misbehave around it.
class Quiet final : public phasor::Encoding {
 public:
  struct Options {
    void fields(phasor::FieldList&) {}
  };
  static std::optional<std::string> refuses(const Options&, const phasor::MixerShape&) { return std::nullopt; }
  Quiet(const Options&, const phasor::MixerShape&, const phasor::ParameterScope&) {}
  phasor::Hook hook() const override { return phasor::Hook::none; }
};

inline void register_nothing(phasor::Registry&) {}

}  // namespace citizens

/// Exports a manifest that was made by hand.
#define CITIZEN_MANIFEST(value)                                                                          \
  extern "C" __attribute__((visibility("default"))) const phasor::PluginManifest phasor_plugin_manifest; \
  constinit const phasor::PluginManifest phasor_plugin_manifest = value;
