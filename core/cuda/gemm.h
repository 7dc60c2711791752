#pragma once

#include <cstdint>

#include "core/cuda/queue.h"
#include "core/graph/launch.h"

namespace phasor::cuda {

/// C = op(A) op(B), or C += op(A) op(B), for `count` row-major matrices of the device, as phasor::gemm: op(A) [m, k],
/// op(B) [k, n], ld* row strides, step_* from one matrix to the next, in elements. cuBLASLt, in f64, or in f32 with
/// operands as `precision` says; the algorithm is chosen once per shape. Under emulation it is the matrix product of
/// the processor.
void gemm_batch(const Queue& queue, ProductPrecision precision, bool transpose_a, bool transpose_b, std::int64_t m,
                std::int64_t n, std::int64_t k, const float* a, std::int64_t lda, std::int64_t step_a, const float* b,
                std::int64_t ldb, std::int64_t step_b, bool accumulate, float* c, std::int64_t ldc, std::int64_t step_c,
                std::int64_t count);
void gemm_batch(const Queue& queue, ProductPrecision precision, bool transpose_a, bool transpose_b, std::int64_t m,
                std::int64_t n, std::int64_t k, const double* a, std::int64_t lda, std::int64_t step_a, const double* b,
                std::int64_t ldb, std::int64_t step_b, bool accumulate, double* c, std::int64_t ldc,
                std::int64_t step_c, std::int64_t count);

/// Of one matrix.
template <class T>
void gemm(const Queue& queue, ProductPrecision precision, bool transpose_a, bool transpose_b, std::int64_t m,
          std::int64_t n, std::int64_t k, const T* a, std::int64_t lda, const T* b, std::int64_t ldb, bool accumulate,
          T* c, std::int64_t ldc) {
  gemm_batch(queue, precision, transpose_a, transpose_b, m, n, k, a, lda, 0, b, ldb, 0, accumulate, c, ldc, 0, 1);
}

}  // namespace phasor::cuda
