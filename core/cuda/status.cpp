#include "core/cuda/status.h"

#include <cstdio>
#include <map>
#include <mutex>
#include <new>
#include <string>

#include "core/base/error.h"

namespace phasor::cuda {

namespace {

/// No memory is needed to say it; the processor's says the same (core/tensor/arena.cpp).
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(const char* what) { std::snprintf(text_, sizeof text_, "out of memory: %s of the device", what); }
  const char* what() const noexcept override { return text_; }

 private:
  char text_[120];
};

}  // namespace

void check(cudaError_t status, const char* what) {
  if (status == cudaErrorMemoryAllocation) throw OutOfMemory(what);
  if (status != cudaSuccess) throw UserError(std::string("cuda: ") + what + ": " + cudaGetErrorString(status));
}

void allow_shared(const void* kernel, std::size_t bytes) {
  static std::mutex mutex;
  static std::map<const void*, std::size_t> allowed;
  const std::lock_guard lock(mutex);
  std::size_t& most = allowed[kernel];
  if (bytes <= most) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)), "shared memory");
  most = bytes;
}

}  // namespace phasor::cuda
