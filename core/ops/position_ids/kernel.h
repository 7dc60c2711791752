#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct PositionIds {
  View ids, starts;  // i32 [batch, time]; starts may be absent
  std::int64_t batch, time, offset;
};

extern const Kernel<PositionIds> position_ids_kernel;

}  // namespace phasor::ops
