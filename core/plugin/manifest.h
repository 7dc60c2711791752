#pragma once

#include <cstddef>
#include <cstdint>

#include "core/plugin/fingerprint.h"  // generated: phasor::fingerprint
#include "core/plugin/registry.h"

namespace phasor {

/// The one symbol a plugin exports. The first 256 bytes are plain data at fixed places, whatever later versions add:
/// the host reads them from the file and judges them before the system loads it, so that no code of a plugin from
/// another build runs, not even its static initialisers.
struct PluginManifest {
  char magic[8];          // "PHASOR1"
  std::uint32_t size;     // of this struct
  char fingerprint[244];  // of the build the plugin was made for
  const char* name;       // of the library, for messages
  const char* version;
  void (*register_all)(Registry&);
};
inline constexpr std::size_t manifest_head = 256;
static_assert(offsetof(PluginManifest, size) == 8 && offsetof(PluginManifest, fingerprint) == 12 &&
              offsetof(PluginManifest, name) == manifest_head);

constexpr PluginManifest make_manifest(const char* name, const char* version, void (*register_all)(Registry&)) {
  PluginManifest manifest{{'P', 'H', 'A', 'S', 'O', 'R', '1', '\0'},
                          static_cast<std::uint32_t>(sizeof(PluginManifest)),
                          {},
                          name,
                          version,
                          register_all};
  static_assert(sizeof(fingerprint.text) <= sizeof(manifest.fingerprint));
  for (std::size_t i = 0; i < sizeof(fingerprint.text); ++i) manifest.fingerprint[i] = fingerprint.text[i];
  return manifest;
}

}  // namespace phasor

/// At the end of a plugin's one file:  PHASOR_PLUGIN("rope", "1.0", [](phasor::Registry& r) { r.encoding<Rope>(...); })
#define PHASOR_PLUGIN(name, version, ...)                                                                  \
  extern "C" __attribute__((visibility("default"))) const ::phasor::PluginManifest phasor_plugin_manifest; \
  constinit const ::phasor::PluginManifest phasor_plugin_manifest = ::phasor::make_manifest(name, version, __VA_ARGS__);
