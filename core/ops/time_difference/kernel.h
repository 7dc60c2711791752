#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct TimeDifferenceForward {
  View x, state_in;   // state_in may be absent
  View starts;        // i32 rows [batch] of [time]; absent: one document per row
  View y, state_out;  // state_out may be absent
  std::int64_t batch, time, width;
};

struct TimeDifferenceBackward {
  View dy, dstate_out;  // absent when none arrived
  View starts;
  View dx, dstate_in;   // absent when not wanted
  std::int64_t batch, time, width;
  bool accumulate_dx, accumulate_dstate_in;
};

extern const Kernel<TimeDifferenceForward> time_difference_forward;
extern const Kernel<TimeDifferenceBackward> time_difference_backward;

}  // namespace phasor::ops
