#include "core/cuda/kernels.h"
#include "core/ops/sum_norm/kernel.h"
#include "core/ops/vector_norm_cuda.h"

namespace phasor::ops {

namespace {

struct Sum {
  template <class T>
  __device__ static T term(T x) {
    return x;
  }
  template <class T>
  __device__ static T factor(T sum) {
    return T(1) / sum;
  }
  template <class T>
  __device__ static T along(T) {
    return T(1);
  }
};

}  // namespace

void sum_norm_cuda(cuda::Kernels& kernels) {
  kernels.add(sum_norm_forward, start_norm<float, Sum>, start_norm<double, Sum>);
  kernels.add(sum_norm_backward, start_norm_back<float, Sum>, start_norm_back<double, Sum>);
}

}  // namespace phasor::ops
