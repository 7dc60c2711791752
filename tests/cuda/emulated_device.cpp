#include "tests/cuda/emulated_device.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "core/cuda/gemm.h"
#include "core/ops/gemm.h"
#include "tests/cuda/emulation.h"

namespace phasor {

namespace {

constexpr std::size_t page = 4096;

/// One device works at a time: what the threads of a block have as variables is the process's (tests/cuda/emulation.h), and
/// host threads with a device each take turns, launch by launch.
std::mutex turn;

const char* running = nullptr;  // the kernel; for the line below

void say_who(int) {
  char line[256];
  const int length =
      running != nullptr
          ? std::snprintf(line, sizeof line, "emulation: kernel %s touched memory outside of its operands\n", running)
          : std::snprintf(line, sizeof line, "emulation: the host touched memory of the device, or wild memory\n");
  if (::write(STDERR_FILENO, line, static_cast<std::size_t>(length)) < 0) std::_Exit(3);
}  // and then the same again, without a handler

void watch_segments() {
  static std::byte stack[64 << 10];  // of its own: fibers may have run out of theirs
  stack_t other{};
  other.ss_sp = stack;
  other.ss_size = sizeof stack;
  sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_handler = say_who;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
}

std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

}  // namespace

/// Work of the device: what runs while one is there has its memory, and may be given addresses of no other.
class EmulatedDevice::Access final : public emulation::Memory {
 public:
  explicit Access(const EmulatedDevice& device) : own_turn_(turn), device_(device) { emulation::set_memory(this); }
  ~Access() { emulation::set_memory(nullptr); }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

  bool holds(std::uintptr_t address) const override {
    auto* place = reinterpret_cast<std::byte*>(address);
    const auto next = device_.blocks_.upper_bound(place);
    const auto& scratch = device_.scratch_;
    return (next != device_.blocks_.begin() && place <= std::prev(next)->first + std::prev(next)->second) ||
           (place >= scratch.data() && place <= scratch.data() + scratch.size());
  }
  void open(bool on) const override {
    if (!device_.guarded_) return;
    for (const auto& [begin, bytes] : device_.blocks_) mprotect(begin, bytes, on ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
  void check(const void* address, std::size_t bytes, const char* what) const {
    PHASOR_CHECK(bytes == 0 || holds(reinterpret_cast<std::uintptr_t>(address)), what);
  }

 private:
  const std::lock_guard<std::mutex> own_turn_;
  const EmulatedDevice& device_;
};

EmulatedDevice::EmulatedDevice(std::size_t scratch_bytes) : scratch_(scratch_bytes) {
  cuda::add_all(kernels_);
  watch_segments();
}

EmulatedDevice::~EmulatedDevice() {
  for (const auto& [begin, bytes] : blocks_) munmap(begin, bytes + page);
}

void EmulatedDevice::set_order(unsigned order) { emulation::set_order(order); }

void EmulatedDevice::leave_open() {
  guarded_ = false;
  for (const auto& [begin, bytes] : blocks_) mprotect(begin, bytes, PROT_READ | PROT_WRITE);
}

void EmulatedDevice::require_no_capture(const char* what) const {
  PHASOR_CHECK(!capturing_, std::string(what) + " while launches are captured");
}

/// A block ends where the page behind it begins.
void* EmulatedDevice::allocate(std::size_t bytes) {
  require_no_capture("memory is taken");
  const std::size_t size = whole_pages(bytes);
  void* memory = mmap(nullptr, size + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<std::byte*>(memory);
  if (!guarded_) mprotect(begin, size, PROT_READ | PROT_WRITE);
  blocks_[begin] = size;
  return begin + (size - bytes);
}

void EmulatedDevice::release(void* data) {
  const auto place = std::prev(blocks_.upper_bound(static_cast<std::byte*>(data)));
  munmap(place->first, place->second + page);
  blocks_.erase(place);
}

void EmulatedDevice::copy_in(void* to, const void* from, std::size_t bytes) {
  require_no_capture("something is copied in");
  const Access access(*this);
  access.check(to, bytes, "a copy to the device goes to its memory");
  access.open(true);
  std::memcpy(to, from, bytes);
  access.open(false);
}

void EmulatedDevice::copy_out(void* to, const void* from, std::size_t bytes) {
  require_no_capture("something is copied out");
  const Access access(*this);
  access.check(from, bytes, "a copy from the device comes from its memory");
  access.open(true);
  std::memcpy(to, from, bytes);
  access.open(false);
}

void EmulatedDevice::fill(void* to, unsigned char byte, std::size_t bytes) {
  const Access access(*this);
  access.check(to, bytes, "memory that is filled is the device's");
  emulation::enqueue([=] { std::memset(to, byte, bytes); });
}

void EmulatedDevice::run(const void* kernel, const char* name, Dtype dtype, const void* args) {
  if (!kernels_.has(kernel, dtype)) throw NoKernel(this->name(), name, dtype);
  const Access access(*this);
  // The beginning is where a kernel would read what it did not write.
  std::memset(scratch_.data(), 0xff, std::min<std::size_t>(scratch_.size(), 1 << 16));
  running = name;
  ++launches_;
  try {
    kernels_.run(kernel, dtype, {nullptr, nullptr, scratch_.data(), scratch_.size(), &sdpa_}, args);
  } catch (const InternalError& error) {
    running = nullptr;
    throw InternalError(std::string(name) + ": " + error.what());
  }
  running = nullptr;
}

void EmulatedDevice::synchronize() { require_no_capture("the queue is waited for"); }

void EmulatedDevice::begin_capture() {
  emulation::begin_capture();
  capturing_ = true;
}

std::shared_ptr<void> EmulatedDevice::end_capture() {
  capturing_ = false;
  return std::make_shared<std::vector<std::function<void()>>>(emulation::end_capture());
}

void EmulatedDevice::replay(void* captured) {
  const Access access(*this);
  for (const auto& work : *static_cast<std::vector<std::function<void()>>*>(captured)) emulation::enqueue(work);
}

namespace cuda {

namespace {
template <class T>
void products(ProductPrecision precision, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
              std::int64_t k, const T* a, std::int64_t lda, std::int64_t step_a, const T* b, std::int64_t ldb,
              std::int64_t step_b, bool accumulate, T* c, std::int64_t ldc, std::int64_t step_c, std::int64_t count) {
  for (const T* operand : {a, b, static_cast<const T*>(c)}) emulation::check_argument(operand);
  emulation::enqueue([=] {
    for (std::int64_t i = 0; i < count; ++i)
      phasor::gemm(precision, transpose_a, transpose_b, m, n, k, T(1), a + i * step_a, lda, b + i * step_b, ldb,
                   accumulate ? T(1) : T(0), c + i * step_c, ldc);
  });
}
}  // namespace

void gemm_batch(const Queue&, ProductPrecision precision, bool transpose_a, bool transpose_b, std::int64_t m,
                std::int64_t n, std::int64_t k, const float* a, std::int64_t lda, std::int64_t step_a, const float* b,
                std::int64_t ldb, std::int64_t step_b, bool accumulate, float* c, std::int64_t ldc, std::int64_t step_c,
                std::int64_t count) {
  products(precision, transpose_a, transpose_b, m, n, k, a, lda, step_a, b, ldb, step_b, accumulate, c, ldc, step_c,
           count);
}

void gemm_batch(const Queue&, ProductPrecision precision, bool transpose_a, bool transpose_b, std::int64_t m,
                std::int64_t n, std::int64_t k, const double* a, std::int64_t lda, std::int64_t step_a, const double* b,
                std::int64_t ldb, std::int64_t step_b, bool accumulate, double* c, std::int64_t ldc,
                std::int64_t step_c, std::int64_t count) {
  products(precision, transpose_a, transpose_b, m, n, k, a, lda, step_a, b, ldb, step_b, accumulate, c, ldc, step_c,
           count);
}

}  // namespace cuda

}  // namespace phasor
