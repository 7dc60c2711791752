#pragma once

#include <string>
#include <vector>

#include "core/plugin/registry.h"

namespace phasor {

/// What became of one plugin file. `problem` is empty for a good one; otherwise one line, without the path: found,
/// expected, what to do.
struct PluginFile {
  std::string path, name, version;
  std::string problem;
  std::string same_as;  // a file that was loaded before and is this one (a link, a folder named twice); nothing is done
};

/// Loads one file into the registry; never throws for a bad plugin, never unloads anything.
PluginFile load_plugin(Registry& registry, const std::string& path);

/// Loads every *.so of a folder in order of name. A bad one does not keep the good ones from loading. A folder that
/// cannot be read is one entry with a problem.
std::vector<PluginFile> load_plugins(Registry& registry, const std::string& folder);

/// Where the plugins of this program are: `<folder of the executable>/../lib/phasor/plugins` (both in the build tree
/// and when installed).
std::string default_plugin_folder();

/// What a plugin must have in common with this program:
/// "api=1 abi=gcc12,cxx11 std=c++20 sanitizer=none cuda=off arch=x86-64-v3 headers=0123456789abcdef".
std::string host_fingerprint();

}  // namespace phasor
