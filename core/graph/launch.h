#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace phasor {

/// What a launch has to do at least. Neither number has a default, so that no kernel forgets to say it.
struct Work {
  Work(double operations, std::int64_t traffic) : flops(operations), bytes(traffic) {}
  double flops;        // of matrix products and mixers; 0: not counted as arithmetic
  std::int64_t bytes;  // read and written, each operand once, as if the caches held nothing before and everything during
};

/// Of all elements; an absent tensor has none.
inline std::int64_t bytes_of(const Tensor& tensor) {
  return tensor ? tensor.size() * static_cast<std::int64_t>(size_of(tensor.dtype())) : 0;
}

/// Bytes of a kernel that reads or writes each of these once: tensors, and gradients (read too where they are added to).
template <class... Operands>
std::int64_t moved(const Operands&... operands) {
  return (std::int64_t{0} + ... + bytes_of(operands));
}

/// Seconds, operations and bytes per kernel name, collected when somebody asks (phasor bench, phasor describe).
class Profile {
 public:
  struct Entry {
    const char* name;
    double seconds;
    double flops;
    std::int64_t bytes;
    std::int64_t calls;
  };
  void add(const Entry& more);
  const std::vector<Entry>& entries() const { return entries_; }
  Entry total() const;
  /// Adds what another has collected, so many times.
  void merge(const Profile& other, std::int64_t times = 1);
  void clear() { entries_.clear(); }

 private:
  std::vector<Entry> entries_;
};

struct Stream;

/// Adds the time between its construction and its end to the profile of a stream; nothing without one. A dry stream counts
/// and does not look at the clock.
class KernelTimer {
 public:
  KernelTimer(const Stream& stream, const char* name, const Work& work);
  ~KernelTimer();
  KernelTimer(const KernelTimer&) = delete;
  KernelTimer& operator=(const KernelTimer&) = delete;

 private:
  Profile* profile_;
  const char* name_;
  Work work_;
  bool timed_;
  std::int64_t start_ = 0;  // nanoseconds
};

class Device;

/// What the operands of matrix products are rounded to, in an f32 stream; sums are f32. Of maps by a weight (linear and its
/// kind) and, on a device, of attention, gla and the delta rule.
enum class ProductPrecision { full, tf32, bf16 };

/// Where kernels run and in which precision. Plain state of one worker; no globals.
struct Stream {
  Dtype dtype = Dtype::f32;
  Profile* profile = nullptr;
  /// Nothing is computed: shapes, memory and operation counts only. Memory is asked for and never touched.
  bool dry = false;
  /// Null: the processor, before launch() returns.
  Device* device = nullptr;
  ProductPrecision products = ProductPrecision::full;
  /// Attention by the device's library (Device::attention_library) where it can: see attention().
  bool library_attention = false;
};

/// Starts a kernel on the device of a stream; waits for it when the stream has a profile.
void launch_on_device(const Stream& stream, const void* kernel, const char* name, const void* args);

/// One kernel: the same source for both precisions. `Args` is plain data, the only thing a kernel sees. A constant with one
/// address, by which a device finds its own version.
template <class Args>
struct Kernel {
  const char* name;
  void (*f32)(const Args&);
  void (*f64)(const Args&);
};

/// The one way a kernel starts. `work` is only for the profile.
template <class Args>
void launch(const Stream& stream, const Kernel<Args>& kernel, const Args& args, const Work& work) {
  static_assert(std::is_trivially_copyable_v<Args>);
  const auto run = stream.dtype == Dtype::f64 ? kernel.f64 : kernel.f32;
  const KernelTimer timer(stream, kernel.name, work);
  if (stream.dry) return;
  if (stream.device != nullptr)
    launch_on_device(stream, &kernel, kernel.name, &args);
  else
    run(args);
}

}  // namespace phasor
