#include "core/ops/running_phase/running_phase.h"

#include "core/graph/place.h"
#include "core/ops/running_phase/kernel.h"

namespace phasor::ops {

Phase running_phase(Tape& tape, const Tensor& increments, const Tensor& temperature, const Tensor& state_in,
                    bool want_state, const Tensor& starts) {
  PHASOR_CHECK(increments.shape().rank() == 4,
               "running_phase increments " + increments.shape().text() + ", expected [batch, time, heads, planes]");
  const RunningPhaseShape shape{increments.size(0), increments.size(1), increments.size(2), increments.size(3)};
  const Shape state_shape{shape.batch, shape.heads, shape.planes};
  PHASOR_CHECK(temperature.size() == shape.planes,
               "running_phase temperature " + temperature.shape().text() + " for " + increments.shape().text());
  PHASOR_CHECK(!state_in || (state_in.shape() == state_shape && state_in.dtype() == Dtype::f64),
               "running_phase state " + state_in.shape().text() + " " + name_of(state_in.dtype()) + ", expected " +
                   state_shape.text() + " f64");
  PHASOR_CHECK(!starts || (starts.shape() == Shape({shape.batch, shape.time}) && starts.dtype() == Dtype::i32),
               "running_phase starts " + starts.shape().text() + " " + name_of(starts.dtype()) + " for " +
                   increments.shape().text());
  const std::int64_t width = shape.heads * shape.planes;
  const Tensor angle = tape.output(increments.shape(), {&increments, &temperature, &state_in});
  const Tensor state = want_state ? tape.output(state_shape, Dtype::f64, {&increments, &state_in}) : Tensor();
  const Tensor sums = tape.empty({2, width}, Dtype::f64);
  launch(tape.stream(), running_phase_forward,
         {shape, increments.view(), temperature.view(), state_in.view(), starts.view(), angle.view(), state.view(),
          sums.view()},
         {0.0, moved(increments, temperature, state_in, starts, angle, state)});
  if (!tape.wants(angle)) return {angle, state};
  tape.record([=, angle = place_of(angle), state = place_of(state)](Tape& t) {
    const Tensor dangle = t.take(angle), dstate = t.take(state);
    if (!dangle && !dstate) return;
    const auto dincrements = t.gradient(increments), dtemperature = t.sum(temperature);
    const auto dstate_in = t.gradient(state_in);
    const Tensor carries = t.empty({3, width}, Dtype::f64);
    launch(t.stream(), running_phase_backward,
           {shape, increments.view(), temperature.view(), state_in.view(), starts.view(), dangle.view(), dstate.view(),
            dincrements.tensor.view(), dstate_in.tensor.view(), dtemperature.tensor.view(), carries.view(),
            dincrements.accumulate, dstate_in.accumulate},
           {0.0, moved(increments, temperature, state_in, starts, dangle, dstate, dincrements, dstate_in, dtemperature)});
  });
  return {angle, state};
}

}  // namespace phasor::ops
