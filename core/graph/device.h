#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/base/error.h"
#include "core/tensor/tensor.h"

namespace phasor {

/// A machine beside the processor: memory, and a queue of work that runs in order, one piece after the other, while the
/// caller goes on. It knows no ops: kernels are found by the address of their `Kernel` constant. One thread at a time
/// uses it. It must outlive the arenas that take memory from it.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;  // "NVIDIA H200"
  virtual std::string kind() const = 0;  // "cuda": what of it decides the bits of a result, and so is part of its name

  /// Memory of the device, 64-byte aligned at least, not initialised; the host may not touch it. Throws std::bad_alloc.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* data) = 0;
  /// Every block wants to be an allocation of its own, so that running over its end is seen (tests).
  virtual bool guards_blocks() const { return false; }

  /// These join the queue. What `copy_in` reads may change as soon as it returns; `copy_out` returns when the bytes
  /// have arrived.
  virtual void copy_in(void* to, const void* from, std::size_t bytes) = 0;
  virtual void copy_out(void* to, const void* from, std::size_t bytes) = 0;
  virtual void fill(void* to, unsigned char byte, std::size_t bytes) = 0;

  /// Starts a kernel on plain data; see launch(). Throws NoKernel when the device has none for this one.
  virtual void run(const void* kernel, const char* name, Dtype dtype, const void* args) = 0;
  virtual bool has(const void* kernel, Dtype dtype) const = 0;
  /// What Stream::library_attention asks for, "cuDNN 9.19.0"; empty, and then `reason` says why there is none.
  virtual std::string attention_library(std::string& reason) const = 0;

  /// Waits until the queue is empty. Faults of kernels show here at the latest.
  virtual void synchronize() = 0;

  /// What is launched between these, and what `fill` does, is remembered and not run; memory is neither taken nor copied in or
  /// out, and nothing is waited for (InternalError). `replay` runs what a capture gave, as one piece.
  virtual void begin_capture() = 0;
  virtual std::shared_ptr<void> end_capture() = 0;
  virtual void replay(void* captured) = 0;
};

/// A kernel that this device does not have.
class NoKernel : public UserError {
 public:
  NoKernel(const std::string& device, const char* kernel, Dtype dtype)
      : UserError("device " + device + ": there is no " + name_of(dtype) + " kernel for " + kernel +
                  ", which only the processor has; run with --device cpu") {}
};

/// The first CUDA device, from libphasor_cuda.so beside this library; null when there is none, and then `reason` says
/// why (not built, no driver, no device).
std::unique_ptr<Device> open_cuda(std::string& reason);

}  // namespace phasor
