#pragma once

#include <cstddef>

#include "core/cuda/launch.h"
#include "core/cuda/mma.h"

// Products of chunks of 64 steps on tensor cores, for recurrences in chunkwise form (gla, delta_rule). Operands lie in
// shared memory as rows of bf16 and serve as they lie or transposed, whatever side of a product they stand on. A warp
// makes strips of 16 rows: a block of four warps has a strip for every 16 steps of a chunk. Sums are f32.
//
// Rows of a matrix in shared memory begin `chunk_stride(width)` halves apart, pieces at multiples of 8, so that every
// row of 8 is 16 aligned bytes and eight rows fall into all banks. "Whole warp" below: all its lanes call it together.

namespace phasor::cuda {

constexpr int chunk_steps = 64, strip_rows = 16, chunk_warps = chunk_steps / strip_rows;
constexpr unsigned chunk_threads = chunk_warps * warp_size;

constexpr int strip_padded(std::int64_t width) { return static_cast<int>((width + 15) / 16 * 16); }
/// `width`: a multiple of 16.
constexpr int chunk_stride(int width) { return width + 8; }

/// Four matrices of 8 x 8: lane 8i + r gives the address of row r of matrix i, and word i of lane l holds row l / 4 of
/// it, columns 2 (l % 4) and the next; transposed: column l / 4, rows 2 (l % 4) and the next (ldmatrix). Whole warp.
template <bool transposed>
__device__ void load_matrices(const Bf16* row, std::uint32_t (&to)[4]) {
#ifdef __CUDACC__
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
#else
  static const Bf16* rows[32][32];  // the emulation: of all lanes, by warp
  const Bf16** const of = rows[warp_index()];
  const unsigned lane = lane_index(), g = lane / 4, t = lane % 4;
  of[lane] = row;
  __syncwarp();
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t lower = transposed ? of[8 * i + 2 * t][g] : of[8 * i + g][2 * t];
    const std::uint32_t upper = transposed ? of[8 * i + 2 * t + 1][g] : of[8 * i + g][2 * t + 1];
    to[i] = lower | upper << 16;
  }
  __syncwarp();  // before anybody writes again
#endif
}

/// A left operand of 16 rows m and 16 columns k.
struct LeftPiece {
  std::uint32_t word[4];
};
/// transposed: element (m, k) is at[k * stride + m], else at[m * stride + k]. Whole warp.
template <bool transposed>
__device__ LeftPiece left_piece(const Bf16* at, int stride) {
  const int lane = static_cast<int>(lane_index());
  LeftPiece piece;
  if constexpr (transposed)
    load_matrices<true>(at + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8, piece.word);
  else
    load_matrices<false>(at + lane % 16 * stride + lane / 16 * 8, piece.word);
  return piece;
}

/// 16 rows and 8 N columns of f32 in the registers of a warp; N is even.
template <int N>
struct Strip {
  static_assert(N % 2 == 0);
  float at[std::size_t{N}][4];

  /// Row of at[.][i], column of at[n][i].
  __device__ static int row(int i) { return static_cast<int>(lane_index()) / 4 + i / 2 * 8; }
  __device__ static int column(int n, int i) { return 8 * n + static_cast<int>(lane_index()) % 4 * 2 + i % 2; }

  /// f(element, row, column) for the elements of the calling lane.
  template <class F>
  __device__ void each(F f) {
    PHASOR_UNROLL
    for (int n = 0; n < N; ++n) {
      PHASOR_UNROLL
      for (int i = 0; i < 4; ++i) f(at[n][i], row(i), column(n, i));
    }
  }
  __device__ void clear() {
    each([](float& x, int, int) { x = 0.0f; });
  }

  /// += left right, 16 of k; transposed: element (k, n) of the right operand is right[n * stride + k], else right[k *
  /// stride + n]. Of the columns those below `columns`, rounded up to 16. Whole warp.
  template <bool transposed>
  __device__ void add(const LeftPiece& left, const Bf16* right, int stride, int columns = 8 * N) {
    const int lane = static_cast<int>(lane_index());
    const Bf16* own = transposed ? right + (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8
                                 : right + lane % 16 * stride + lane / 16 * 8;
    PHASOR_UNROLL
    for (int n = 0; n < N; n += 2) {
      if (8 * n >= columns) break;
      std::uint32_t words[4];
      load_matrices<!transposed>(own + (transposed ? 8 * n * stride : 8 * n), words);
      const std::uint32_t first[2] = {words[0], words[1]}, second[2] = {words[2], words[3]};
      mma_bf16(at[n], left.word, first);
      mma_bf16(at[n + 1], left.word, second);
    }
  }

  /// += left right over `depth` of k, a multiple of 16. Whole warp.
  template <bool left_transposed, bool right_transposed>
  __device__ void add(const Bf16* left, int left_stride, const Bf16* right, int right_stride, int depth,
                      int columns = 8 * N) {
    for (int k = 0; k < depth; k += 16)
      add<right_transposed>(left_piece<left_transposed>(left + (left_transposed ? k * left_stride : k), left_stride),
                            right + (right_transposed ? k : k * right_stride), right_stride, columns);
  }

  /// Columns 16 c .. 16 c + 15, rounded, as a left operand of the next product: 16 rows, the columns are its k.
  __device__ LeftPiece left(int c) const {
    const float(&x)[4] = at[2 * c], (&y)[4] = at[2 * c + 1];
    return {{bf16_pair(x[0], x[1]), bf16_pair(x[2], x[3]), bf16_pair(y[0], y[1]), bf16_pair(y[2], y[3])}};
  }

  /// Into rows of bf16; transposed: element (row, column) goes to to[column * stride + row].
  template <bool transposed>
  __device__ void keep(Bf16* to, int stride) const {
    PHASOR_UNROLL
    for (int n = 0; n < N; ++n) {
      PHASOR_UNROLL
      for (int i = 0; i < 4; i += 2) {
        if constexpr (transposed) {
          to[column(n, i) * stride + row(i)] = to_bf16(at[n][i]);
          to[column(n, i + 1) * stride + row(i)] = to_bf16(at[n][i + 1]);
        } else {
          *reinterpret_cast<std::uint32_t*>(to + row(i) * stride + column(n, i)) = bf16_pair(at[n][i], at[n][i + 1]);
        }
      }
    }
  }
};

/// to[r * stride + c] = f(r, c), rounded, for r < rows, a multiple of 4, and c < width, even. By a block of
/// chunk_threads: a warp takes a row, lanes take neighbours in c. No barrier.
template <int rows, class F>
__device__ void stage_rounded(Bf16* to, int stride, int width, F f) {
  for (int c = 2 * static_cast<int>(lane_index()); c < width; c += 2 * static_cast<int>(warp_size)) {
    PHASOR_UNROLL
    for (int n = 0; n < rows / chunk_warps; ++n) {
      const int r = n * chunk_warps + static_cast<int>(warp_index());
      *reinterpret_cast<std::uint32_t*>(to + r * stride + c) = bf16_pair(f(r, c), f(r, c + 1));
    }
  }
}

}  // namespace phasor::cuda
