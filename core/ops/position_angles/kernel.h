#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct PositionAngles {
  View frequencies;  // f64 [planes]
  View starts;       // i32 rows [rows] of [time]; absent: the same for all rows, which are then one
  View angle;        // rows [rows * time] of [planes]
  std::int64_t rows, time, planes, offset;
};

extern const Kernel<PositionAngles> position_angles_forward;

}  // namespace phasor::ops
