#include <cmath>

#include "core/cuda/kernels.h"
#include "core/cuda/shares.h"
#include "core/ops/cross_entropy/kernel.h"

namespace phasor::ops {

namespace {

constexpr unsigned most_warps = 16;

/// Threads for one row: about eight logits each, in whole warps.
constexpr unsigned threads_for(std::int64_t vocabulary) {
  unsigned warps = 1;
  while (warps < most_warps && 8 * warps * cuda::warp_size < vocabulary) warps *= 2;
  return warps * cuda::warp_size;
}

/// Of a block; every thread gets it. NaN is never larger than anything: each thread begins with the first logit, so
/// that NaN becomes the maximum only from there, and otherwise reaches the loss through the sum.
template <class T>
__device__ T largest(const T* z, std::int64_t size, T* shared) {
  T top = z[0];
  for (std::int64_t i = threadIdx.x; i < size; i += blockDim.x) top = z[i] > top ? z[i] : top;
  top = cuda::warp_max(top);
  if (cuda::lane_index() == 0) shared[cuda::warp_index()] = top;
  __syncthreads();
  return cuda::warp_max(shared[cuda::lane_index() % (blockDim.x / cuda::warp_size)]);
}

/// A block takes one row.
template <class T>
__global__ void forward_row(CrossEntropyForward a) {
  __shared__ T tops[most_warps], sums[cuda::warp_size];
  __shared__ std::int32_t counts[cuda::warp_size];
  const std::int64_t r = blockIdx.x;
  const std::int64_t target = static_cast<const std::int32_t*>(a.targets.data)[r];
  T* loss = static_cast<T*>(a.loss.data);
  auto* correct = static_cast<std::int32_t*>(a.correct.data);
  if (target < 0) {
    if (threadIdx.x == 0) loss[r] = T(0);
    if (threadIdx.x == 0 && correct != nullptr) correct[r] = 0;
    return;
  }
  const T* z = row<T>(a.logits, r);
  const T top = largest(z, a.vocabulary, tops);
  T sum(0);
  std::int32_t before = 0;  // as large as the largest, and earlier than the target
  for (std::int64_t i = threadIdx.x; i < a.vocabulary; i += blockDim.x) {
    const T below = z[i] - top;
    sum += std::exp(below);
    if (i < target && z[i] == top) before = 1;
  }
  sum = cuda::block_sum(sum, sums);
  before = cuda::block_sum(before, counts);
  if (threadIdx.x != 0) return;
  loss[r] = std::log(sum) - (z[target] - top);
  if (a.kept.data != nullptr) {
    row<T>(a.kept, r)[0] = top;
    row<T>(a.kept, r)[1] = T(1) / sum;
  }
  if (correct != nullptr) correct[r] = z[target] == top && before == 0 ? 1 : 0;
}

template <class T>
__global__ void backward_rows(CrossEntropyBackward a) {
  const auto at = cuda::own_share(a.rows, a.vocabulary);
  const std::int64_t target = static_cast<const std::int32_t*>(a.targets.data)[at.row];
  const T* z = row<T>(a.logits, at.row);
  T* dz = row<T>(a.dlogits, at.row);
  if (target < 0) {  // nothing was kept
    if (!a.accumulate) cuda::write_each(at, dz, false, [](std::int64_t) { return T(0); });
    return;
  }
  const T dloss = static_cast<const T*>(a.dloss.data)[at.row];
  const T top = row<T>(a.kept, at.row)[0], scale = row<T>(a.kept, at.row)[1] * dloss;
  cuda::write_each(at, dz, a.accumulate, [&](std::int64_t i) {
    const T share = std::exp(z[i] - top) * scale;
    return i == target ? share - dloss : share;
  });
}

template <class T>
void forward(const cuda::Queue& queue, const CrossEntropyForward& a) {
  cuda::start(queue, dim3(static_cast<unsigned>(a.rows)), dim3(threads_for(a.vocabulary)), 0, forward_row<T>, a);
}

template <class T>
void backward(const cuda::Queue& queue, const CrossEntropyBackward& a) {
  cuda::start_rows(queue, a.rows, a.vocabulary, backward_rows<T>, a);
}

}  // namespace

void cross_entropy_cuda(cuda::Kernels& kernels) {
  kernels.add(cross_entropy_forward, forward<float>, forward<double>);
  kernels.add(cross_entropy_backward, backward<float>, backward<double>);
}

}  // namespace phasor::ops
