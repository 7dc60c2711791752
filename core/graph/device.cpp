#include "core/graph/device.h"

#include <dlfcn.h>
#include <filesystem>

namespace phasor {

namespace {

/// The folder of the library that this code is in.
std::filesystem::path own_folder() {
  Dl_info found{};
  if (dladdr(reinterpret_cast<const void*>(&open_cuda), &found) == 0 || found.dli_fname == nullptr) return {};
  return std::filesystem::path(found.dli_fname).parent_path();
}

}  // namespace

std::unique_ptr<Device> open_cuda(std::string& reason) {
  const std::filesystem::path file = own_folder() / "libphasor_cuda.so";
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    reason = "not built";
    return nullptr;
  }
  // Kept until the process ends: devices and what they gave out may be used until then.
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* text = dlerror();
    reason = text != nullptr ? text : file.string() + " cannot be loaded";
    return nullptr;
  }
  using Open = std::unique_ptr<Device> (*)(std::string&);
  const auto open = reinterpret_cast<Open>(dlsym(library, "phasor_open_cuda"));
  if (open == nullptr) {
    reason = file.string() + " is of another version";
    return nullptr;
  }
  return open(reason);
}

}  // namespace phasor
