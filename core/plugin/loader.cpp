#include "core/plugin/loader.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <exception>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <typeinfo>

#include "core/base/blame.h"
#include "core/base/error.h"
#include "core/plugin/elf_file.h"
#include "core/plugin/manifest.h"

namespace phasor {

namespace {

constexpr const char* symbol = "phasor_plugin_manifest";
constexpr const char* rebuild = "; rebuild the plugin with this build's headers";

/// The bytes up to the first NUL.
std::string c_text(std::string_view bytes) { return one_line(bytes.substr(0, bytes.find('\0'))); }

std::map<std::string, std::string> components(const std::string& fingerprint) {
  std::map<std::string, std::string> parts;
  std::size_t at = 0;
  while (at < fingerprint.size()) {
    const std::size_t end = std::min(fingerprint.find(' ', at), fingerprint.size());
    const std::string part = fingerprint.substr(at, end - at);
    if (!part.empty()) parts[part.substr(0, part.find('='))] = part;
    at = end + 1;
  }
  return parts;
}

/// The components of `from` that are missing or other in `to`.
std::string different(const std::string& from, const std::string& to) {
  const auto others = components(to);
  std::string text;
  for (const auto& [name, part] : components(from)) {
    const auto other = others.find(name);
    if (other != others.end() && other->second == part) continue;
    text += (text.empty() ? "" : " ") + part;
  }
  return text.empty() ? "none" : text;
}

/// Judges the head of a manifest, which is plain data; throws UserError.
void judge(std::string_view head) {
  const PluginManifest own = make_manifest("", "", nullptr);
  const std::string magic = c_text(head.substr(0, sizeof(own.magic)));
  if (head.size() < manifest_head || magic != own.magic) {
    throw UserError("found a manifest that begins with \"" + magic + "\", expected \"" + own.magic + "\"" + rebuild);
  }
  const std::string found = c_text(head.substr(offsetof(PluginManifest, fingerprint), sizeof(own.fingerprint)));
  if (found != own.fingerprint) {
    throw UserError("found " + different(found, own.fingerprint) + ", expected " + different(own.fingerprint, found) +
                    rebuild);
  }
  std::uint32_t size = 0;
  std::memcpy(&size, head.data() + offsetof(PluginManifest, size), sizeof(size));
  if (size != own.size) {
    throw UserError("found a manifest of " + std::to_string(size) + " bytes, expected " + std::to_string(own.size) +
                    rebuild);
  }
}

/// dlopen's reason without the path in front of it.
std::string shortened(const std::string& path, std::string reason) {
  if (reason.starts_with(path + ": ")) reason.erase(0, path.size() + 2);
  constexpr std::string_view undefined = "undefined symbol: ";
  if (!reason.starts_with(undefined)) {
    return "found a library that the system cannot load (" + one_line(reason) +
           "), expected one whose dependencies are all here; install what is missing or build it again";
  }
  std::string name = reason.substr(undefined.size());
  name.erase(std::min({name.find_first_of(" \t"), name.find(',')}) == std::string::npos
                 ? name.size()
                 : std::min(name.find_first_of(" \t"), name.find(',')));
  return "found the undefined symbol " + one_line(demangled(name.c_str())) +
         ", expected every symbol in the plugin itself or in the core; add the source or library that has it, or "
         "rebuild "
         "the plugin with this build's headers";
}

const PluginManifest& open(const std::string& path) {
  // Local, or the symbols of two plugins would mix; never unloaded, since objects, exceptions and type information of a
  // plugin may outlive every owner we could name.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* reason = dlerror();
    throw UserError(shortened(path, reason == nullptr ? "no reason given" : reason));
  }
  const void* data = dlsym(library, symbol);
  if (data == nullptr) throw UserError(std::string("found no symbol ") + symbol + " after loading" + rebuild);
  judge({static_cast<const char*>(data), manifest_head});  // the file may have been replaced meanwhile
  return *static_cast<const PluginManifest*>(data);
}

/// Runs the plugin's code; returns what it threw, or nothing.
std::string run_register_all(const PluginManifest& manifest, Registry& registry) {
  const auto threw = [](const std::string& what) {
    return "found that register_all throws " + what + ", expected it to register without; nothing of it is used, repair " +
           "the plugin";
  };
  try {
    manifest.register_all(registry);
    return {};
  } catch (const UserError& error) {
    return one_line(error.what());
  } catch (const std::exception& error) {
    return threw(demangled(typeid(error).name()) + " (" + one_line(error.what()) + ")");
  } catch (...) {
    return threw(exception_text());
  }
}

/// The loaded library that is this very file, perhaps under another name, or "".
std::string loaded_as(const Registry& registry, const std::string& path) {
  for (const std::string& known : registry.libraries()) {
    std::error_code error;
    if (std::filesystem::equivalent(known, path, error) && !error) return known;
  }
  return {};
}

void load(Registry& registry, const std::string& path, PluginFile& out) {
  const std::string head = ElfFile::open(path).object(symbol, manifest_head);
  if (head.empty()) {
    throw UserError(
        std::string("found no symbol ") + symbol +
        ", expected PHASOR_PLUGIN(...) at the end of the plugin's source; add it, or remove the file if it is "
        "no plugin");
  }
  judge(head);
  out.same_as = loaded_as(registry, path);
  if (!out.same_as.empty()) return;
  const PluginManifest& manifest = open(path);
  if (manifest.name == nullptr || manifest.version == nullptr || manifest.register_all == nullptr) {
    throw UserError(
        "found a manifest without name, version or register_all, expected all three; use PHASOR_PLUGIN(...)");
  }
  out.name = one_line(manifest.name);
  out.version = one_line(manifest.version);
  registry.from_library(path);
  out.problem = run_register_all(manifest, registry);
  registry.from_library("");
  if (!out.problem.empty()) registry.forget(path);
}

}  // namespace

PluginFile load_plugin(Registry& registry, const std::string& path) {
  PluginFile out;
  out.path = path;
  try {
    // With a slash in it, or dlopen would search the system's folders.
    load(registry, path.find('/') == std::string::npos ? "./" + path : path, out);
  } catch (const std::exception& error) {
    out.problem = one_line(error.what());
  }
  return out;
}

std::vector<PluginFile> load_plugins(Registry& registry, const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".so") paths.push_back(at->path().string());
  }
  if (error) {
    PluginFile missing;
    missing.path = folder;
    missing.problem = "cannot be read (" + error.message() +
                      "), expected the folder of the plugins; build them, or name another folder";
    return {missing};
  }
  std::sort(paths.begin(), paths.end());
  std::vector<PluginFile> files;
  for (const std::string& path : paths) files.push_back(load_plugin(registry, path));
  return files;
}

std::string default_plugin_folder() {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  return (program.parent_path().parent_path() / "lib" / "phasor" / "plugins").string();
}

std::string host_fingerprint() { return fingerprint.text; }

}  // namespace phasor
