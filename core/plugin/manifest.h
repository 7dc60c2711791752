#pragma once

#include <cstdint>

#include "core/plugin/fingerprint.h"  // generated: PHASOR_FINGERPRINT
#include "core/plugin/registry.h"

namespace phasor {

/// The one symbol a plugin exports, constant data that the host judges before any code of the plugin runs.
struct PluginManifest {
  char magic[8];              // "PHASOR1"
  std::uint32_t size;         // of this struct
  const char* fingerprint;    // of the build the plugin was made for
  const char* name;           // of the library, for messages
  const char* version;
  void (*register_all)(Registry&);
};

}  // namespace phasor

/// At the end of a plugin's one file:  PHASOR_PLUGIN("rope", "1.0", [](phasor::Registry& r) { r.encoding<Rope>(...); })
#define PHASOR_PLUGIN(name, version, register_all)                                                       \
  extern "C" __attribute__((visibility("default"))) const ::phasor::PluginManifest phasor_plugin_manifest; \
  const ::phasor::PluginManifest phasor_plugin_manifest = {                                              \
      {'P', 'H', 'A', 'S', 'O', 'R', '1', '\0'}, sizeof(::phasor::PluginManifest), PHASOR_FINGERPRINT,   \
      name, version, register_all};
