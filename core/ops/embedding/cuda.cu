#include "core/cuda/kernels.h"
#include "core/cuda/reduce.h"
#include "core/ops/embedding/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
__global__ void forward_element(EmbeddingForward a) {
  const auto [token, i] = cuda::place_of(cuda::thread_index(), a.dim);
  if (token >= a.batch * a.time) return;
  const std::int32_t id = row<const std::int32_t>(a.ids, token / a.time)[token % a.time];
  row<T>(a.y, token)[i] = id < 0 ? T(0) : row<T>(a.weight, id)[i];
}

constexpr unsigned warps = 8, own = 4, tile = own * cuda::warp_size;

/// Block (id, columns / tile): the sum over the tokens that have this id. Warp w looks at every `warps`-th group of 32
/// tokens, each lane at one; all lanes then add the rows of those that match, a column per lane. The warps' sums are
/// added in order.
template <class T>
__global__ void backward_row(EmbeddingBackward a) {
  __shared__ T parts[warps][tile];
  const auto id = static_cast<std::int64_t>(blockIdx.x);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * tile, tokens = a.batch * a.time;
  if (id == a.padding) return;
  T sum[own] = {};
  for (std::int64_t start = cuda::warp_index() * cuda::warp_size; start < tokens; start += warps * cuda::warp_size) {
    const std::int64_t token = start + cuda::lane_index();
    const bool match = token < tokens && row<const std::int32_t>(a.ids, token / a.time)[token % a.time] == id;
    for (unsigned left = __ballot_sync(cuda::whole_warp, match); left != 0; left &= left - 1) {
      const T* dy = row<T>(a.dy, start + __ffs(static_cast<int>(left)) - 1);
      for (unsigned k = 0; k < own; ++k) {
        const std::int64_t column = first + k * cuda::warp_size + cuda::lane_index();
        if (column < a.dim) sum[k] += dy[column];
      }
    }
  }
  for (unsigned k = 0; k < own; ++k) parts[cuda::warp_index()][k * cuda::warp_size + cuda::lane_index()] = sum[k];
  __syncthreads();
  const std::int64_t column = first + threadIdx.x;
  if (threadIdx.x >= tile || column >= a.dim) return;
  T total(0);
  for (unsigned w = 0; w < warps; ++w) total += parts[w][threadIdx.x];
  row<T>(a.dweight, id)[column] += total;
}

template <class T>
void forward(const cuda::Queue& queue, const EmbeddingForward& a) {
  cuda::start_each(queue, a.batch * a.time * a.dim, forward_element<T>, a);
}

template <class T>
void backward(const cuda::Queue& queue, const EmbeddingBackward& a) {
  const auto tiles = static_cast<unsigned>(cuda::divide_up(a.dim, tile));
  cuda::start(queue, dim3(static_cast<unsigned>(a.vocabulary), tiles), dim3(warps * cuda::warp_size), 0,
              backward_row<T>, a);
}

}  // namespace

void embedding_cuda(cuda::Kernels& kernels) {
  kernels.add(embedding_forward, forward<float>, forward<double>);
  kernels.add(embedding_backward, backward<float>, backward<double>);
}

}  // namespace phasor::ops
