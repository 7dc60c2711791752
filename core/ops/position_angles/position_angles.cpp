#include "core/ops/position_angles/position_angles.h"

#include "core/ops/position_angles/kernel.h"

namespace phasor::ops {

Tensor position_angles(Tape& tape, const Tensor& frequencies, std::int64_t offset, std::int64_t time) {
  PHASOR_CHECK(frequencies.shape().rank() == 1 && frequencies.dtype() == Dtype::f64 && !tape.wants(frequencies),
               "position_angles frequencies " + frequencies.shape().text() + " " + name_of(frequencies.dtype()) +
                   ", expected a constant [planes] f64");
  const std::int64_t planes = frequencies.size();
  const Tensor angle = tape.empty({time, planes});
  launch(tape.stream(), position_angles_forward, {frequencies.view(), angle.view(), time, planes, offset});
  return angle;
}

}  // namespace phasor::ops
