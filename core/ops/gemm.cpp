#include "core/ops/gemm.h"

#include <dnnl.h>
#include <omp.h>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/rounding.h"

namespace phasor {

namespace {

/// [rows, columns] without gaps between the rows.
template <int mantissa>
void round_rows(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t columns, float* to) {
  for (std::int64_t r = 0; r < rows; ++r)
#pragma omp simd
    for (std::int64_t i = 0; i < columns; ++i) to[r * columns + i] = rounded<mantissa>(from[r * stride + i]);
}

}  // namespace

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
  const dnnl_status_t status =
      dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  PHASOR_CHECK(status == dnnl_success, "matrix product of oneDNN");
}

void gemm(ProductPrecision precision, bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n,
          std::int64_t k, float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta,
          float* c, std::int64_t ldc) {
  if (precision == ProductPrecision::full)
    return gemm(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  thread_local std::vector<float> memory;  // grows to the largest product of the thread
  const auto size = static_cast<std::size_t>(m * k + k * n);
  if (memory.size() < size) memory.resize(size);
  float* const left = memory.data();
  float* const right = left + m * k;
  const auto round = precision == ProductPrecision::bf16 ? round_rows<bf16_mantissa> : round_rows<tf32_mantissa>;
  const std::int64_t left_width = transpose_a ? m : k, right_width = transpose_b ? k : n;
  round(a, lda, transpose_a ? k : m, left_width, left);
  round(b, ldb, transpose_b ? n : k, right_width, right);
  gemm(transpose_a, transpose_b, m, n, k, alpha, left, left_width, right, right_width, beta, c, ldc);
}

}  // namespace phasor
