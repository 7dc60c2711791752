#pragma once

#include <bit>
#include <cstdint>

#include "core/base/rounding.h"
#include "core/cuda/launch.h"

// Products of bf16 on tensor cores, summed in f32: what a warp does with `mma.sync.m16n8k16`. Two neighbours in k share
// a word, the first one in its lower half. With g = lane / 4 and t = lane % 4 a lane has (PTX ISA, "Matrix fragments
// for mma.m16n8k16"):
//   a[0], a[1]  rows g and g + 8 of A, k = 2t, 2t + 1;  a[2], a[3]  the same rows, k = 2t + 8, 2t + 9
//   b[0], b[1]  column g of B, k = 2t, 2t + 1 and k = 2t + 8, 2t + 9
//   c[0], c[1]  row g of C, columns 2t, 2t + 1;  c[2], c[3]  row g + 8

namespace phasor::cuda {

/// The upper half of an f32.
using Bf16 = std::uint16_t;

#ifdef __CUDACC__
/// The bits of rounded<bf16_mantissa>, but for those of a NaN.
__device__ inline Bf16 to_bf16(float x) {
  Bf16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
__device__ inline std::uint32_t bf16_pair(float first, float second) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}
#else
inline Bf16 to_bf16(float x) {
  return static_cast<Bf16>(std::bit_cast<std::uint32_t>(rounded<bf16_mantissa>(x)) >> 16);
}
inline std::uint32_t bf16_pair(float first, float second) {
  return static_cast<std::uint32_t>(to_bf16(first)) | static_cast<std::uint32_t>(to_bf16(second)) << 16;
}
#endif
__device__ inline float to_float(Bf16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16); }

#ifdef __CUDACC__
/// c += a b. All lanes of a warp call it. The emulation has its own.
__device__ inline void mma_bf16(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

}  // namespace phasor::cuda
