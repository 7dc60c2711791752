#pragma once

#include <map>

#include "core/cuda/kernels.h"
#include "core/graph/device.h"
#include "tests/cuda/emulated_sdpa.h"

namespace phasor {

/// A device whose kernels are those of every cuda.cu, run by tests/cuda/emulation.h. Its memory is memory of the
/// process that only kernels and copies can touch: elsewhere, and beyond the end of a block, it is closed, and touching
/// it ends the process with a line that names the kernel. Kernels are given addresses of this memory only: one of the
/// host's is an error, as on a device. Matrix products are those of the processor, and a library's attention is the plain
/// definition. Several threads may have one each.
class EmulatedDevice : public Device {
 public:
  explicit EmulatedDevice(std::size_t scratch_bytes = 16 << 20);
  ~EmulatedDevice() override;

  /// See emulation::set_order. Kernels without races give the same bits in every order.
  void set_order(unsigned order);
  /// From now on the host may touch the memory too: opening and closing it around every launch is most of the time of tests
  /// that launch thousands of small kernels.
  void leave_open();
  /// Kernels asked for so far.
  std::int64_t launches() const { return launches_; }
  /// Passes of a library's attention asked for so far.
  int attention_passes() const { return sdpa_.passes; }

  std::string name() const override { return "emulation"; }
  std::string kind() const override { return "emulation"; }
  void* allocate(std::size_t bytes) override;
  void release(void* data) override;
  bool guards_blocks() const override { return true; }
  void copy_in(void* to, const void* from, std::size_t bytes) override;
  void copy_out(void* to, const void* from, std::size_t bytes) override;
  void fill(void* to, unsigned char byte, std::size_t bytes) override;
  void run(const void* kernel, const char* name, Dtype dtype, const void* args) override;
  bool has(const void* kernel, Dtype dtype) const override { return kernels_.has(kernel, dtype); }
  std::string attention_library(std::string&) const override { return sdpa_.name(); }
  void synchronize() override;
  void begin_capture() override;
  std::shared_ptr<void> end_capture() override;
  void replay(void* captured) override;

 private:
  class Access;
  void require_no_capture(const char* what) const;

  cuda::Kernels kernels_;
  EmulatedSdpa sdpa_;
  std::map<std::byte*, std::size_t> blocks_;  // pages of a block, without the one behind it
  std::vector<std::byte> scratch_;
  std::int64_t launches_ = 0;
  bool capturing_ = false, guarded_ = true;
};

}  // namespace phasor
