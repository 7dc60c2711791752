#pragma once

#include <cstdint>

#include "core/cuda/queue.h"

#ifdef __CUDACC__
#include <type_traits>
#include "core/cuda/status.h"
#endif

// What a cuda.cu includes beside kernel.h, core/cuda/math.h and core/cuda/reduce.h. A kernel is started by start() or
// start_each() and never by <<<>>>, so that the same source is also C++: tests/cuda/emulation.h, included before it,
// defines what nvcc would.

/// Before a loop over an array that shall stay in registers.
#ifdef __CUDACC__
#define PHASOR_UNROLL _Pragma("unroll")
#else
#define PHASOR_UNROLL
#endif

namespace phasor::cuda {

constexpr unsigned warp_size = 32;

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

#ifdef __CUDACC__
// How much shared memory a kernel may have is kept by CUDA for the function, in the whole process, and not for the launch:
// other trials in the process may start the same function with another size at the same time. So it is allowed through
// allow_shared(), which never takes back what it gave; how much a block gets is said at the launch, and no kernel is
// slower for what it might have had.

/// Starts a kernel; nothing happens on an empty grid. `shared`: bytes of dynamic shared memory, up to what the device
/// has.
template <class... Parameters>
void start(const Queue& queue, dim3 grid, dim3 threads, std::size_t shared, void (*kernel)(Parameters...),
           std::type_identity_t<Parameters>... args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  const auto* function = reinterpret_cast<const void*>(kernel);
  constexpr std::size_t without_asking = 48 << 10;
  if (shared > without_asking)
    allow_shared(function, shared);

  void* places[] = {&args...};
  check(cudaLaunchKernel(function, grid, threads, places, shared, static_cast<cudaStream_t>(queue.stream)),
        "start of a kernel");
}

/// Dynamic shared memory, 16-byte aligned.
template <class T>
__device__ T* shared_memory() {
  extern __shared__ __align__(16) unsigned char memory[];
  return reinterpret_cast<T*>(memory);
}
#endif

/// Of all threads of a grid in x.
__device__ inline std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline unsigned lane_index() { return threadIdx.x % warp_size; }
__device__ inline unsigned warp_index() { return threadIdx.x / warp_size; }

/// Starts at least `count` threads that have nothing to do with each other; the kernel looks at thread_index() and lets
/// go what is beyond `count`.
template <class... Parameters, class... Args>
void start_each(const Queue& queue, std::int64_t count, void (*kernel)(Parameters...), const Args&... args) {
  constexpr unsigned threads = 256;
  start(queue, dim3(static_cast<unsigned>(divide_up(count, threads))), dim3(threads), 0, kernel, args...);
}

/// Row and column of an element of a matrix, counted row by row. Division of 64 bits is slow on a device.
struct Place {
  std::int64_t row, column;
};
__device__ inline Place place_of(std::int64_t element, std::int64_t width) {
  if (element < width) return {0, element};
  if ((element | width) >> 32 == 0) {
    const auto e = static_cast<std::uint32_t>(element), w = static_cast<std::uint32_t>(width);
    return {e / w, e % w};
  }
  return {element / width, element % width};
}

}  // namespace phasor::cuda
