#include "core/cuda/kernels.h"
#include "core/cuda/shares.h"
#include "core/ops/position_ids/kernel.h"

namespace phasor::ops {

namespace {

__global__ void fill_rows(PositionIds a) {
  const auto at = cuda::own_share(a.batch, a.time);
  const auto* starts = cuda::optional_row<const std::int32_t>(a.starts, at.row);
  auto* ids = row<std::int32_t>(a.ids, at.row);
  cuda::write_each(at, ids, false, [&](std::int64_t t) {
    return static_cast<std::int32_t>(starts == nullptr ? t + a.offset : t - starts[t]);
  });
}

void fill(const cuda::Queue& queue, const PositionIds& a) { cuda::start_rows(queue, a.batch, a.time, fill_rows, a); }

}  // namespace

void position_ids_cuda(cuda::Kernels& kernels) { kernels.add(position_ids_kernel, fill, fill); }

}  // namespace phasor::ops
