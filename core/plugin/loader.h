#pragma once

#include <string>
#include <vector>

#include "core/plugin/registry.h"

namespace phasor {

/// What became of one plugin file. `problem` is empty for a good one; otherwise one line: found, expected, what to do.
struct PluginFile {
  std::string path, name, version;
  std::string problem;
};

/// Loads one file into the registry; never throws for a bad plugin, never unloads a good one.
PluginFile load_plugin(Registry& registry, const std::string& path);

/// Loads every *.so of a folder in order of name. A bad one does not keep the good ones from loading.
std::vector<PluginFile> load_plugins(Registry& registry, const std::string& folder);

/// Where the plugins of this program are: `<folder of the executable>/../lib/phasor/plugins` (both in the build tree and
/// when installed).
std::string default_plugin_folder();

}  // namespace phasor
