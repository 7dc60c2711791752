#pragma once

#include <unordered_map>

#include "core/cuda/queue.h"
#include "core/graph/launch.h"

namespace phasor::cuda {

/// The CUDA versions of kernels, by the address of the `Kernel` constant. Every room's cuda.cu has one function
/// `void <room>_cuda(cuda::Kernels&)` that adds its own; the list of rooms is the list of folders
/// (core/cuda/CMakeLists.txt).
class Kernels {
 public:
  template <class Args>
  using Function = void (*)(const Queue&, const Args&);

  template <class Args>
  void add(const Kernel<Args>& kernel, Function<Args> f32, Function<Args> f64) {
    const auto call = [](void (*function)(), const Queue& queue, const void* args) {
      reinterpret_cast<Function<Args>>(function)(queue, *static_cast<const Args*>(args));
    };
    entries_[&kernel] = {call, reinterpret_cast<void (*)()>(f32), reinterpret_cast<void (*)()>(f64)};
  }

  bool has(const void* kernel, Dtype dtype) const {
    const auto place = entries_.find(kernel);
    return place != entries_.end() && place->second.of(dtype) != nullptr;
  }
  /// For a kernel that is there.
  void run(const void* kernel, Dtype dtype, const Queue& queue, const void* args) const {
    const Entry& entry = entries_.at(kernel);
    entry.call(entry.of(dtype), queue, args);
  }

 private:
  struct Entry {
    void (*call)(void (*)(), const Queue&, const void*);
    void (*f32)();
    void (*f64)();
    void (*of(Dtype dtype) const)() { return dtype == Dtype::f64 ? f64 : f32; }
  };
  std::unordered_map<const void*, Entry> entries_;
};

/// All rooms (generated).
void add_all(Kernels& kernels);

}  // namespace phasor::cuda
