#include "core/cuda/kernels.h"
#include "core/cuda/shares.h"
#include "core/ops/argmax/kernel.h"

namespace phasor::ops {

namespace {

/// The smallest index of the largest element, as std::max_element: all lanes begin with element 0, and NaN is larger
/// than nothing.
template <class T>
__global__ void find_best(Argmax a) {
  const auto at = cuda::own_share(a.rows, a.width);
  const T* x = row<T>(a.x, at.row);
  T top = x[0];
  std::int64_t best = 0;
  for (std::int64_t i = at.first; i < at.end; i += at.step)
    if (x[i] > top) {
      top = x[i];
      best = i;
    }
  for (unsigned apart = blockDim.x / 2; apart > 0; apart /= 2) {
    const T other = __shfl_xor_sync(cuda::whole_warp, top, static_cast<int>(apart));
    const std::int64_t index = __shfl_xor_sync(cuda::whole_warp, best, static_cast<int>(apart));
    if (other > top || (other == top && index < best)) {
      top = other;
      best = index;
    }
  }
  if (at.there && threadIdx.x == 0) static_cast<std::int32_t*>(a.best.data)[at.row] = static_cast<std::int32_t>(best);
}

template <class T>
void run(const cuda::Queue& queue, const Argmax& a) {
  cuda::start_vectors(queue, a.rows, a.width, find_best<T>, a);
}

}  // namespace

void argmax_cuda(cuda::Kernels& kernels) { kernels.add(argmax_kernel, run<float>, run<double>); }

}  // namespace phasor::ops
