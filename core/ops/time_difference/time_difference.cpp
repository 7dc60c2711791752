#include "core/ops/time_difference/time_difference.h"

#include "core/graph/place.h"
#include "core/ops/time_difference/kernel.h"

namespace phasor::ops {

Difference time_difference(Tape& tape, const Tensor& x, const Tensor& state_in, bool want_state,
                           const Tensor& starts) {
  PHASOR_CHECK(x.shape().rank() >= 3, "time_difference of " + x.shape().text() + ", expected [batch, time, ..]");
  const std::int64_t batch = x.size(0), time = x.size(1), width = x.width();
  const Shape state_shape{batch, width};
  PHASOR_CHECK(!state_in || state_in.shape() == state_shape,
               "time_difference state " + state_in.shape().text() + ", expected " + state_shape.text());
  PHASOR_CHECK(!starts || (starts.shape() == Shape({batch, time}) && starts.dtype() == Dtype::i32),
               "time_difference starts " + starts.shape().text() + " " + name_of(starts.dtype()) + " for " +
                   x.shape().text());
  const Tensor y = tape.output(x.shape(), {&x, &state_in});
  const Tensor state = want_state ? tape.output(state_shape, {&x, &state_in}) : Tensor();
  launch(tape.stream(), time_difference_forward,
         {x.view(), state_in.view(), starts.view(), y.view(), state.view(), batch, time, width},
         {static_cast<double>(x.size()), moved(x, state_in, starts, y, state)});
  if (!tape.wants(y)) return {y, state};
  tape.record([=, x = place_of(x), y = place_of(y), state = place_of(state), state_in = place_of(state_in)](Tape& t) {
    const Tensor dy = t.take(y), dstate = t.take(state);
    if (!dy && !dstate) return;
    const auto dx = t.gradient(x), dstate_in = t.gradient(state_in);
    launch(t.stream(), time_difference_backward,
           {dy.view(), dstate.view(), starts.view(), dx.tensor.view(), dstate_in.tensor.view(), batch, time, width,
            dx.accumulate, dstate_in.accumulate},
           {static_cast<double>(x.size()), moved(dy, dstate, starts, dx, dstate_in)});
  });
  return {y, state};
}

}  // namespace phasor::ops
