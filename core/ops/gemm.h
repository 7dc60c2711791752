#pragma once

#include <cstdint>

#include "core/graph/launch.h"

namespace phasor {

/// C = alpha * op(A) op(B) + beta * C for row-major matrices, op(A) [m, k], op(B) [k, n]; ld* are row strides in
/// elements. f32 is oneDNN on the calling thread alone; f64 (a debug precision) is a plain blocked loop. With beta = 0
/// the old content of C is not read.
void gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
          const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc);
void gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
          const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta, double* c,
          std::int64_t ldc);

/// The same, with the elements of A and B rounded before; a copy of both is rounded on the way. f64 is never rounded.
void gemm(ProductPrecision precision, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
          std::int64_t k, float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta,
          float* c, std::int64_t ldc);
inline void gemm(ProductPrecision, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                 double alpha, const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta,
                 double* c, std::int64_t ldc) {
  gemm(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/// Keeps oneDNN on the calling thread, whatever OMP_NUM_THREADS says. Every thread that launches kernels calls it once.
void use_one_thread_for_gemm();

/// Version of the GEMM library, e.g. "oneDNN 2.6.3", for provenance.
const char* gemm_library();

}  // namespace phasor
