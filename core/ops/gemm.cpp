#include "core/ops/gemm.h"

#include <dnnl.h>
#include <omp.h>

#include <string>

#include "core/base/error.h"

namespace phasor {

void use_one_thread_for_gemm() { omp_set_num_threads(1); }

const char* gemm_library() {
  static const std::string text = [] {
    const dnnl_version_t* v = dnnl_version();
    return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  }();
  return text.c_str();
}

void gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha,
          const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double beta, double* c,
          std::int64_t ldc) {
  using T = double;
  if (m == 0 || n == 0) return;
  const auto a_at = [&](std::int64_t i, std::int64_t p) { return transpose_a ? a[p * lda + i] : a[i * lda + p]; };
  for (std::int64_t i = 0; i < m; ++i) {
    T* out = c + i * ldc;
    for (std::int64_t j = 0; j < n; ++j) out[j] = beta == T(0) ? T(0) : beta * out[j];
    if (transpose_b) {
      for (std::int64_t j = 0; j < n; ++j) {
        T sum(0);
        for (std::int64_t p = 0; p < k; ++p) sum += a_at(i, p) * b[j * ldb + p];
        out[j] += alpha * sum;
      }
    } else {
      for (std::int64_t p = 0; p < k; ++p) {
        const T factor = alpha * a_at(i, p);
        const T* from = b + p * ldb;
#pragma omp simd
        for (std::int64_t j = 0; j < n; ++j) out[j] += factor * from[j];
      }
    }
  }
}

void gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha,
          const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) c[i * ldc + j] = beta == 0.0f ? 0.0f : beta * c[i * ldc + j];
    return;
  }
  const dnnl_status_t status = dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, alpha, a, lda, b,
                                          ldb, beta, c, ldc);
  PHASOR_CHECK(status == dnnl_success, "matrix product of oneDNN");
}

}  // namespace phasor
