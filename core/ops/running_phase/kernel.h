#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct RunningPhaseShape {
  std::int64_t batch, time, heads, planes;
};

/// States are double in every precision and may be absent.
struct RunningPhaseForward {
  RunningPhaseShape shape;
  View increments, temperature, state_in;
  View starts;  // i32 rows [batch] of [time]; absent: one document per row
  View angle, state_out;
  View sums;  // scratch f64 [2, heads * planes]
};

struct RunningPhaseBackward {
  RunningPhaseShape shape;
  View increments, temperature, state_in, starts;
  View dangle, dstate_out;      // absent when none arrived
  View dincrements, dstate_in;  // absent when not wanted
  View dtemperature;            // absent when not wanted; always accumulated
  View sums;                    // scratch f64 [3, heads * planes]
  bool accumulate_dincrements, accumulate_dstate_in;
};

extern const Kernel<RunningPhaseForward> running_phase_forward;
extern const Kernel<RunningPhaseBackward> running_phase_backward;

}  // namespace phasor::ops
