#include "core/ops/position_angles/position_angles.h"

#include "core/ops/position_angles/kernel.h"

namespace phasor::ops {

Tensor position_angles(Tape& tape, const Tensor& frequencies, std::int64_t offset, std::int64_t time,
                       const Tensor& starts) {
  PHASOR_CHECK(frequencies.shape().rank() == 1 && frequencies.dtype() == Dtype::f64 && !tape.wants(frequencies),
               "position_angles frequencies " + frequencies.shape().text() + " " + name_of(frequencies.dtype()) +
                   ", expected a constant [planes] f64");
  PHASOR_CHECK(!starts || (starts.shape().rank() == 2 && starts.size(1) == time && starts.dtype() == Dtype::i32),
               "position_angles starts " + starts.shape().text() + " " + name_of(starts.dtype()) + " for " +
                   std::to_string(time) + " steps");
  const std::int64_t planes = frequencies.size(), rows = starts ? starts.size(0) : 1;
  const Tensor angle = tape.empty(starts ? Shape{rows, time, planes} : Shape{time, planes});
  launch(tape.stream(), position_angles_forward,
         {frequencies.view(), starts.view(), angle.view(), rows, time, planes, offset},
         {0.0, moved(frequencies, starts, angle)});
  return angle;
}

}  // namespace phasor::ops
