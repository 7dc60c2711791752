#include <cmath>

#include "core/cuda/kernels.h"
#include "core/ops/l2_norm/kernel.h"
#include "core/ops/vector_norm_cuda.h"

namespace phasor::ops {

namespace {

struct Length {
  template <class T>
  __device__ static T term(T x) {
    return x * x;
  }
  template <class T>
  __device__ static T factor(T square) {
    return T(1) / std::sqrt(square);
  }
  template <class T>
  __device__ static T along(T y) {
    return y;
  }
};

}  // namespace

void l2_norm_cuda(cuda::Kernels& kernels) {
  kernels.add(l2_norm_forward, start_norm<float, Length>, start_norm<double, Length>);
  kernels.add(l2_norm_backward, start_norm_back<float, Length>, start_norm_back<double, Length>);
}

}  // namespace phasor::ops
