#include "core/ops/position_ids/kernel.h"

namespace phasor::ops {

namespace {

void fill(const PositionIds& a) {
  for (std::int64_t b = 0; b < a.batch; ++b) {
    auto* ids = row<std::int32_t>(a.ids, b);
    const auto* starts = a.starts.data == nullptr ? nullptr : row<const std::int32_t>(a.starts, b);
    for (std::int64_t t = 0; t < a.time; ++t)
      ids[t] = static_cast<std::int32_t>(starts == nullptr ? t + a.offset : t - starts[t]);
  }
}

}  // namespace

const Kernel<PositionIds> position_ids_kernel{"position_ids", fill, fill};

}  // namespace phasor::ops
