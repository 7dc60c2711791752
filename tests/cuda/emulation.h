#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/cuda/queue.h"

// What nvcc would define, for C++: a cuda.cu that is compiled after this header runs on the processor. Blocks run one
// after the other; the threads of a block are fibers that change places at barriers and at what a warp does together.
// Shared memory is full of NaN when a block begins. See docs/cuda.md.

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_size = 1, unsigned y_size = 1, unsigned z_size = 1) : x(x_size), y(y_size), z(z_size) {}
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }

// Of the thread that runs.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static thread_local  // so that it lies where the emulation can find it
#define __align__(bytes) alignas(bytes)
#define __launch_bounds__(...)

namespace phasor::emulation {

using Where = std::source_location;

/// The order in which threads and blocks run: 0 upwards, 1 downwards, others shuffled by this number.
void set_order(unsigned order);

/// Memory of a device, of which kernels may be given addresses and of no other.
class Memory {
 public:
  virtual bool holds(std::uintptr_t address) const = 0;
  /// Whether it can be touched.
  virtual void open(bool on) const = 0;

 protected:
  ~Memory() = default;
};
/// From now on work is on this, which is open while it runs; null: on all that the process has.
void set_memory(const Memory* memory);
/// Throws InternalError when an argument of a kernel, `bytes` of it, holds an address of memory of the host.
void check_addresses(const void* argument, std::size_t bytes);

template <class T>
void check_argument(T argument) {
  __builtin_clear_padding(&argument);
  check_addresses(&argument, sizeof argument);
}

/// Work joins the queue: runs now, or is kept while a capture is on.
void enqueue(std::function<void()> work);
/// Between these `enqueue` keeps.
void begin_capture();
std::vector<std::function<void()>> end_capture();

/// Runs a grid. `kernel`: the function, `body`: its call for one thread. Throws InternalError on a fault, which names
/// the line.
void run_grid(dim3 grid, dim3 threads, std::size_t shared, const void* kernel, const std::function<void()>& body);

void barrier(int predicate, int* count, Where where);

enum class WarpKind : std::uint8_t { sync, shuffle, ballot };
/// What the lanes of `mask` do together: a lane gets the bits of lane `source`, or of all lanes the set whose bits are
/// not 0.
std::uint64_t warp(WarpKind kind, unsigned mask, std::uint64_t bits, unsigned source, Where where);
unsigned lane();

std::byte* dynamic_shared();

template <class T>
T shuffle(unsigned mask, T value, unsigned source, Where where) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t) && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = warp(WarpKind::shuffle, mask, bits, source, where);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace phasor::emulation

inline void __syncthreads(phasor::emulation::Where where = phasor::emulation::Where::current()) {
  phasor::emulation::barrier(0, nullptr, where);
}
inline int __syncthreads_count(int predicate, phasor::emulation::Where where = phasor::emulation::Where::current()) {
  int count = 0;
  phasor::emulation::barrier(predicate != 0 ? 1 : 0, &count, where);
  return count;
}
inline int __syncthreads_or(int predicate, phasor::emulation::Where where = phasor::emulation::Where::current()) {
  return __syncthreads_count(predicate, where) > 0 ? 1 : 0;
}
inline int __syncthreads_and(int predicate, phasor::emulation::Where where = phasor::emulation::Where::current()) {
  return __syncthreads_count(predicate != 0 ? 0 : 1, where) == 0 ? 1 : 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu,
                       phasor::emulation::Where where = phasor::emulation::Where::current()) {
  phasor::emulation::warp(phasor::emulation::WarpKind::sync, mask, 0, 0, where);
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              phasor::emulation::Where where = phasor::emulation::Where::current()) {
  const unsigned size = static_cast<unsigned>(width), first = phasor::emulation::lane() & ~(size - 1);
  return phasor::emulation::shuffle(mask, value, first + static_cast<unsigned>(source) % size, where);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned apart, int width = 32,
                 phasor::emulation::Where where = phasor::emulation::Where::current()) {
  const unsigned own = phasor::emulation::lane(), first = own & ~(static_cast<unsigned>(width) - 1);
  return phasor::emulation::shuffle(mask, value, own >= first + apart ? own - apart : own, where);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned apart, int width = 32,
                   phasor::emulation::Where where = phasor::emulation::Where::current()) {
  const unsigned own = phasor::emulation::lane(), size = static_cast<unsigned>(width), end = (own & ~(size - 1)) + size;
  return phasor::emulation::shuffle(mask, value, own + apart < end ? own + apart : own, where);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int apart, int width = 32,
                  phasor::emulation::Where where = phasor::emulation::Where::current()) {
  const unsigned own = phasor::emulation::lane(), size = static_cast<unsigned>(width), end = (own & ~(size - 1)) + size;
  const unsigned other = own ^ static_cast<unsigned>(apart);
  return phasor::emulation::shuffle(mask, value, other < end ? other : own, where);
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              phasor::emulation::Where where = phasor::emulation::Where::current()) {
  return static_cast<unsigned>(
      phasor::emulation::warp(phasor::emulation::WarpKind::ballot, mask, predicate != 0 ? 1 : 0, 0, where));
}
inline int __any_sync(unsigned mask, int predicate,
                      phasor::emulation::Where where = phasor::emulation::Where::current()) {
  return __ballot_sync(mask, predicate, where) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int predicate,
                      phasor::emulation::Where where = phasor::emulation::Where::current()) {
  return __ballot_sync(mask, predicate, where) == mask ? 1 : 0;
}

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz(static_cast<unsigned>(bits)); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
template <class T>
T __ldg(const T* from) {
  return *from;
}
inline void __threadfence() {}
inline void __threadfence_block() {}

// Atomic because nothing comes between: fibers change places at barriers only. Of floats there are none (see reduce.h).
inline int atomicAdd(int* to, int value) { return std::exchange(*to, *to + value); }
inline unsigned atomicAdd(unsigned* to, unsigned value) { return std::exchange(*to, *to + value); }
inline int atomicMax(int* to, int value) { return std::exchange(*to, value > *to ? value : *to); }
inline int atomicMin(int* to, int value) { return std::exchange(*to, value < *to ? value : *to); }
inline unsigned atomicOr(unsigned* to, unsigned value) { return std::exchange(*to, *to | value); }
inline int atomicExch(int* to, int value) { return std::exchange(*to, value); }
inline int atomicCAS(int* to, int expected, int value) { return std::exchange(*to, *to == expected ? value : *to); }

namespace phasor::cuda {

/// See core/cuda/launch.h.
template <class... Parameters>
void start(const Queue&, dim3 grid, dim3 threads, std::size_t shared, void (*kernel)(Parameters...),
           std::type_identity_t<Parameters>... args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  (emulation::check_argument(args), ...);
  emulation::enqueue([=] {
    emulation::run_grid(grid, threads, shared, reinterpret_cast<const void*>(kernel), [&] { kernel(args...); });
  });
}

template <class T>
T* shared_memory() {
  return reinterpret_cast<T*>(emulation::dynamic_shared());
}

/// See core/cuda/mma.h. The sums are in the order of k, which the hardware does not promise.
inline void mma_bf16(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                     emulation::Where where = emulation::Where::current()) {
  struct Fragments {
    std::uint32_t a[4], b[2];
  };
  static Fragments block[32][32];  // of all lanes, by warp: others run while one waits
  Fragments* const warp = block[threadIdx.x / 32];
  const unsigned lane = emulation::lane(), g = lane / 4, t = lane % 4;
  std::copy_n(a, 4, warp[lane].a);
  std::copy_n(b, 2, warp[lane].b);
  emulation::warp(emulation::WarpKind::sync, 0xffffffffu, 0, 0, where);
  const auto half = [](std::uint32_t word, unsigned k) {
    return std::bit_cast<float>(k % 2 == 0 ? word << 16 : word & 0xffff0000u);
  };
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned k = 0; k < 16; ++k) {
      const Fragments& left = warp[g * 4 + k / 2 % 4];
      const Fragments& right = warp[(2 * t + i % 2) * 4 + k / 2 % 4];
      c[i] += half(left.a[2 * (k / 8) + i / 2], k) * half(right.b[k / 8], k);
    }
  emulation::warp(emulation::WarpKind::sync, 0xffffffffu, 0, 0, where);  // before anybody writes again
}

}  // namespace phasor::cuda
