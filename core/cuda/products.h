#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <map>

#include "core/graph/launch.h"

namespace phasor::cuda {

/// cuBLASLt: its handle, its workspace and the algorithm of every shape seen so far, chosen at the first product of the
/// shape.
class Products {
 public:
  Products();
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// Of `count` row-major matrices; see core/cuda/gemm.h.
  struct Task {
    ProductPrecision precision;
    bool transpose_a, transpose_b, accumulate;
    std::int64_t m, n, k, lda, ldb, ldc, step_a, step_b, step_c, count;
    const void* a;
    const void* b;
    void* c;
  };
  void run(cudaStream_t stream, cudaDataType type, const Task& task);

 private:
  struct Plan {
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
  };
  using Key = std::array<std::int64_t, 18>;
  const Plan& plan(const Key& key, cudaDataType type, const Task& task);

  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::map<Key, Plan> plans_;
};

}  // namespace phasor::cuda
