#pragma once

#include <chrono>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace phasor {

/// Seconds and floating-point operations per kernel name, collected when somebody asks (phasor bench).
class Profile {
 public:
  struct Entry {
    const char* name;
    double seconds;
    double flops;
    std::int64_t calls;
  };
  void add(const char* name, double seconds, double flops);
  const std::vector<Entry>& entries() const { return entries_; }
  void merge(const Profile& other);
  void clear() { entries_.clear(); }

 private:
  std::vector<Entry> entries_;
};

/// Where kernels run and in which precision. Plain state of one lane; no globals.
struct Stream {
  Dtype dtype = Dtype::f32;
  Profile* profile = nullptr;
};

/// One kernel: the same source for both precisions. `Args` is plain data, the only thing a kernel sees.
template <class Args>
struct Kernel {
  const char* name;
  void (*f32)(const Args&);
  void (*f64)(const Args&);
};

/// The one way a kernel starts. `flops` is only for the profile (0: not counted as arithmetic).
template <class Args>
void launch(const Stream& stream, const Kernel<Args>& kernel, const Args& args, double flops = 0.0) {
  static_assert(std::is_trivially_copyable_v<Args>);
  const auto run = stream.dtype == Dtype::f64 ? kernel.f64 : kernel.f32;
  if (stream.profile == nullptr) {
    run(args);
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  run(args);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  stream.profile->add(kernel.name, spent.count(), flops);
}

}  // namespace phasor
