#include "core/cuda/kernels.h"
#include "core/cuda/reduce.h"
#include "core/ops/dropout/kernel.h"

namespace phasor::ops {

namespace {

constexpr unsigned warps = 8, words = 4, tile = words * cuda::warp_size;

/// Where element e of a row of the batch lies; one division less when its tokens have no gaps.
template <class T>
__device__ T* element(const View& view, const Dropout& a, std::int64_t b, std::int64_t e) {
  if (view.stride == a.dim) return row<T>(view, b * a.time) + e;
  const auto [t, i] = cuda::place_of(e, a.dim);
  return row<T>(view, b * a.time + t) + i;
}

/// A warp takes `tile` elements of one row of the batch, each lane the four words of a Philox block, which the lanes
/// then exchange, so that neighbours read and write neighbours. Element e takes word e of the stream of the row
/// (RandomStream::bits32).
template <class T>
__global__ void drop_tiles(Dropout a, std::int64_t tiles) {
  const auto [b, first_tile] =
      cuda::place_of(static_cast<std::int64_t>(blockIdx.x) * warps + cuda::warp_index(), tiles);
  if (b >= a.batch) return;
  const std::uint64_t step = a.step_at != nullptr ? static_cast<std::uint64_t>(*a.step_at) : 0;
  const std::uint64_t stream = a.stream + (step << 24) + static_cast<std::uint64_t>(b);
  const auto quad = static_cast<std::uint64_t>(first_tile * cuda::warp_size + cuda::lane_index());
  const PhiloxBlock own = philox(a.key, {static_cast<std::uint32_t>(quad), static_cast<std::uint32_t>(quad >> 32),
                                         static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)});
  const T factor = static_cast<T>(a.factor);
  const std::int64_t size = a.time * a.dim;
  T result[words] = {};
  T* to[words];
  for (unsigned k = 0; k < words; ++k) {
    const unsigned in_tile = k * cuda::warp_size + cuda::lane_index(), place = in_tile % words;
    std::uint32_t random[words];
    for (unsigned j = 0; j < words; ++j)
      random[j] = __shfl_sync(cuda::whole_warp, own[j], static_cast<int>(in_tile / words));
    const std::uint32_t word = place < 2 ? (place == 0 ? random[0] : random[1]) : (place == 2 ? random[2] : random[3]);
    const std::int64_t e = first_tile * tile + in_tile;
    to[k] = e < size ? element<T>(a.y, a, b, e) : nullptr;
    if (to[k] == nullptr) continue;
    const T kept = word < a.threshold ? T(0) : factor * *element<T>(a.x, a, b, e);
    result[k] = a.accumulate ? *to[k] + kept : kept;
  }
  for (unsigned k = 0; k < words; ++k)
    if (to[k] != nullptr) *to[k] = result[k];
}

template <class T>
void run(const cuda::Queue& queue, const Dropout& a) {
  const std::int64_t tiles = cuda::divide_up(a.time * a.dim, tile);
  cuda::start(queue, dim3(static_cast<unsigned>(cuda::divide_up(a.batch * tiles, warps))),
              dim3(warps * cuda::warp_size), 0, drop_tiles<T>, a, tiles);
}

}  // namespace

void dropout_cuda(cuda::Kernels& kernels) { kernels.add(dropout_kernel, run<float>, run<double>); }

}  // namespace phasor::ops
