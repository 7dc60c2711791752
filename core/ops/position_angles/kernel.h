#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct PositionAngles {
  View frequencies;  // f64 [planes]
  View angle;        // [time, planes]
  std::int64_t time, planes, offset;
};

extern const Kernel<PositionAngles> position_angles_forward;

}  // namespace phasor::ops
