#pragma once

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

/// Adds the time between its construction and its end to a profile; nothing without one.
class KernelTimer {
 public:
  KernelTimer(Profile* profile, const char* name, double flops);
  ~KernelTimer();
  KernelTimer(const KernelTimer&) = delete;
  KernelTimer& operator=(const KernelTimer&) = delete;

 private:
  Profile* profile_;
  const char* name_;
  double flops_;
  std::int64_t start_ = 0;  // nanoseconds
};

/// Where kernels run and in which precision. Plain state of one lane; no globals.
struct Stream {
  Dtype dtype = Dtype::f32;
  Profile* profile = nullptr;
  /// Nothing is computed: shapes, memory and operation counts only. Memory is asked for and never touched.
  bool dry = false;
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
  const KernelTimer timer(stream.profile, kernel.name, flops);
  if (!stream.dry) run(args);
}

}  // namespace phasor
