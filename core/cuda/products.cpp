#include "core/cuda/products.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/cuda/gemm.h"
#include "core/cuda/status.h"

namespace phasor::cuda {

namespace {

constexpr std::size_t workspace_bytes = 32 << 20;  // what cuBLAS advises for Hopper

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_ALLOC_FAILED) cuda::check(cudaErrorMemoryAllocation, what);
  if (status != CUBLAS_STATUS_SUCCESS)
    throw UserError(std::string("cuda: ") + what + ": " + cublasLtGetStatusString(status));
}

/// The power of two that an address is a multiple of, up to 256.
std::int64_t alignment(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address);
  return bits == 0 ? 256 : static_cast<std::int64_t>(std::min<std::uintptr_t>(bits & (~bits + 1), 256));
}

/// f32 operands of tensor cores are rounded by the library as it reads them.
cublasComputeType_t arithmetic(cudaDataType type, ProductPrecision precision) {
  if (type == CUDA_R_64F) return CUBLAS_COMPUTE_64F;
  if (precision == ProductPrecision::tf32) return CUBLAS_COMPUTE_32F_FAST_TF32;
  return precision == ProductPrecision::bf16 ? CUBLAS_COMPUTE_32F_FAST_16BF : CUBLAS_COMPUTE_32F;
}

template <class T>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value), "preference of a product");
}

template <class T>
void set(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check(cublasLtMatmulDescSetAttribute(product, attribute, &value, sizeof value), "description of a product");
}

cublasLtMatrixLayout_t layout(cudaDataType type, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                              std::int64_t step, std::int64_t count) {
  cublasLtMatrixLayout_t out = nullptr;
  check(cublasLtMatrixLayoutCreate(&out, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns),
                                   stride),
        "layout of a matrix");
  const auto matrices = static_cast<std::int32_t>(count);
  check(cublasLtMatrixLayoutSetAttribute(out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &matrices, sizeof matrices),
        "number of matrices");
  check(cublasLtMatrixLayoutSetAttribute(out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step),
        "step of matrices");
  return out;
}

}  // namespace

Products::Products() {
  check(cublasLtCreate(&handle_), "cuBLASLt");
  const cudaError_t status = cudaMalloc(&workspace_, workspace_bytes);
  if (status != cudaSuccess) cublasLtDestroy(handle_);
  check(status, "workspace of cuBLASLt");
}

Products::~Products() {
  for (const auto& [key, plan] : plans_) {
    cublasLtMatmulDescDestroy(plan.product);
    for (const cublasLtMatrixLayout_t each : {plan.first, plan.second, plan.result}) cublasLtMatrixLayoutDestroy(each);
  }
  cudaFree(workspace_);
  cublasLtDestroy(handle_);
}

// cuBLAS counts down columns, so a row-major matrix is to it the transpose, and C^T = op(B)^T op(A)^T is what it is
// asked for.
const Products::Plan& Products::plan(const Key& key, cudaDataType type, const Task& t) {
  const auto [place, fresh] = plans_.try_emplace(key);
  Plan& plan = place->second;
  if (!fresh) return plan;
  check(cublasLtMatmulDescCreate(&plan.product, arithmetic(type, t.precision), type), "description of a product");
  set(plan.product, CUBLASLT_MATMUL_DESC_TRANSA, t.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(plan.product, CUBLASLT_MATMUL_DESC_TRANSB, t.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  plan.first = t.transpose_b ? layout(type, t.k, t.n, t.ldb, t.step_b, t.count)
                             : layout(type, t.n, t.k, t.ldb, t.step_b, t.count);
  plan.second = t.transpose_a ? layout(type, t.m, t.k, t.lda, t.step_a, t.count)
                              : layout(type, t.k, t.m, t.lda, t.step_a, t.count);
  plan.result = layout(type, t.n, t.m, t.ldc, t.step_c, t.count);
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "preference of a product");
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<std::uint32_t>(alignment(t.b)));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, static_cast<std::uint32_t>(alignment(t.a)));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<std::uint32_t>(alignment(t.c)));
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<std::uint32_t>(alignment(t.c)));
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_, plan.product, plan.first, plan.second,
                                                               plan.result, plan.result, preference, 1, &best, &found);
  cublasLtMatmulPreferenceDestroy(preference);
  check(found > 0 ? status : CUBLAS_STATUS_NOT_SUPPORTED, "algorithm of a product");
  plan.algorithm = best.algo;
  return plan;
}

void Products::run(cudaStream_t stream, cudaDataType type, const Task& t) {
  if (t.m == 0 || t.n == 0 || t.count == 0) return;
  const std::size_t element = type == CUDA_R_64F ? 8 : 4;
  if (t.k == 0) {  // a sum of nothing
    for (std::int64_t i = 0; i < t.count && !t.accumulate; ++i)
      check(cudaMemset2DAsync(static_cast<std::byte*>(t.c) + static_cast<std::size_t>(i * t.step_c) * element,
                              static_cast<std::size_t>(t.ldc) * element, 0, static_cast<std::size_t>(t.n) * element,
                              static_cast<std::size_t>(t.m), stream),
            "zeros");
    return;
  }
  const Key key{t.transpose_a,  t.transpose_b,  t.m,           t.n,      t.k,     t.lda, t.ldb,
                t.ldc,          t.step_a,       t.step_b,      t.step_c, t.count, type,  t.accumulate,
                alignment(t.a), alignment(t.b), alignment(t.c), static_cast<std::int64_t>(t.precision)};
  const Plan& p = plan(key, type, t);
  const double one = 1.0, keep = t.accumulate ? 1.0 : 0.0;
  const auto one_f = static_cast<float>(one), keep_f = static_cast<float>(keep);
  const bool exact = type == CUDA_R_64F;
  check(cublasLtMatmul(handle_, p.product, exact ? static_cast<const void*>(&one) : &one_f, t.b, p.first, t.a, p.second,
                       exact ? static_cast<const void*>(&keep) : &keep_f, t.c, p.result, t.c, p.result, &p.algorithm,
                       workspace_, workspace_bytes, stream),
        "product of matrices");
}

void gemm_batch(const Queue& queue, ProductPrecision precision, bool transpose_a, bool transpose_b, std::int64_t m,
                std::int64_t n, std::int64_t k, const float* a, std::int64_t lda, std::int64_t step_a, const float* b,
                std::int64_t ldb, std::int64_t step_b, bool accumulate, float* c, std::int64_t ldc, std::int64_t step_c,
                std::int64_t count) {
  queue.products->run(static_cast<cudaStream_t>(queue.stream), CUDA_R_32F,
                      {precision, transpose_a, transpose_b, accumulate, m, n, k, lda, ldb, ldc, step_a, step_b, step_c,
                       count, a, b, c});
}

void gemm_batch(const Queue& queue, ProductPrecision precision, bool transpose_a, bool transpose_b, std::int64_t m,
                std::int64_t n, std::int64_t k, const double* a, std::int64_t lda, std::int64_t step_a, const double* b,
                std::int64_t ldb, std::int64_t step_b, bool accumulate, double* c, std::int64_t ldc,
                std::int64_t step_c, std::int64_t count) {
  queue.products->run(static_cast<cudaStream_t>(queue.stream), CUDA_R_64F,
                      {precision, transpose_a, transpose_b, accumulate, m, n, k, lda, ldb, ldc, step_a, step_b, step_c,
                       count, a, b, c});
}

}  // namespace phasor::cuda
