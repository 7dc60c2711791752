#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct SpreadLastForward {
  View x, table, y;
  std::int64_t batch, time, dim;
};

struct SpreadLastBackward {
  View dy, dx;  // dx is always accumulated
  std::int64_t batch, time, dim;
};

extern const Kernel<SpreadLastForward> spread_last_forward;
extern const Kernel<SpreadLastBackward> spread_last_backward;

}  // namespace phasor::ops
