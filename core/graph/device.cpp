#include "core/graph/device.h"

#include <dlfcn.h>
#include <filesystem>

#include "core/cuda/devices.h"

namespace phasor {

namespace {

/// The folder of the library that this code is in.
std::filesystem::path own_folder() {
  Dl_info found{};
  if (dladdr(reinterpret_cast<const void*>(&open_cuda), &found) == 0 || found.dli_fname == nullptr) return {};
  return std::filesystem::path(found.dli_fname).parent_path();
}

/// A function of libphasor_cuda.so; null with the reason why not.
void* find_in_cuda(const char* name, std::string& reason) {
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
  void* found = dlsym(library, name);
  if (found == nullptr) reason = file.string() + " is of another version";
  return found;
}

}  // namespace

std::unique_ptr<Device> open_cuda(std::string& reason) { return open_cuda_of_slot(reason, 0); }

std::unique_ptr<Device> open_cuda_of_slot(std::string& reason, std::int64_t slot) {
  using Open = std::unique_ptr<Device> (*)(std::string&, std::int64_t);
  const auto open = reinterpret_cast<Open>(find_in_cuda("phasor_open_cuda", reason));
  return open != nullptr ? open(reason, slot) : nullptr;
}

std::int64_t count_cuda() {
  std::string reason;
  const auto count = reinterpret_cast<std::int64_t (*)()>(find_in_cuda("phasor_count_cuda", reason));
  return count != nullptr ? count() : 0;
}

}  // namespace phasor
