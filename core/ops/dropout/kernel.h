#pragma once

#include "core/base/philox.h"
#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct Dropout {
  View x, y;
  std::int64_t batch, time, dim;
  PhiloxKey key;
  std::uint64_t stream;     // of the first row; the next row has the next one
  const std::int64_t* step_at;  // of a device: 2^24 times what stands there comes to `stream`; null: nothing does
  std::uint32_t threshold;  // an element is dropped when its word is below
  double factor;
  bool accumulate;
};

extern const Kernel<Dropout> dropout_kernel;

}  // namespace phasor::ops
