#include "core/ops/short_conv/short_conv.h"

#include "core/graph/place.h"
#include "core/ops/short_conv/kernel.h"

namespace phasor::ops {

ConvResult short_conv(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, bool silu,
                      const Tensor& state_in, bool want_state, const Tensor& starts) {
  PHASOR_CHECK(x.shape().rank() >= 3 && weight.shape().rank() == 2 && weight.size(0) == x.width() && weight.size(1) > 0,
               "short_conv of " + x.shape().text() + " with weight " + weight.shape().text());
  const ShortConvShape shape{x.size(0), x.size(1), x.width(), weight.size(1), silu};
  const Shape state_shape{shape.batch, shape.channels, shape.window};
  PHASOR_CHECK(!bias || bias.size() == shape.channels,
               "short_conv bias " + bias.shape().text() + " for " + x.shape().text());
  PHASOR_CHECK(!state_in || state_in.shape() == state_shape,
               "short_conv state " + state_in.shape().text() + ", expected " + state_shape.text());
  PHASOR_CHECK(!starts || (starts.shape() == Shape({shape.batch, shape.time}) && starts.dtype() == Dtype::i32),
               "short_conv starts " + starts.shape().text() + " " + name_of(starts.dtype()) + " for " +
                   x.shape().text());
  const Tensor y = tape.output(x.shape(), {&x, &weight, &bias, &state_in});
  const Tensor state = want_state ? tape.output(state_shape, {&x, &state_in}) : Tensor();
  const double flops = 2.0 * static_cast<double>(shape.window) * static_cast<double>(x.size());
  const Tensor taps = tape.empty({shape.window + 1, shape.channels});
  const Tensor history = tape.empty({shape.window + 1, shape.channels});
  launch(tape.stream(), short_conv_forward,
         {shape, x.view(), weight.view(), bias.view(), state_in.view(), starts.view(), y.view(), state.view(),
          taps.view(), history.view()},
         {flops, moved(x, weight, bias, state_in, starts, y, state)});
  if (!tape.wants(y)) return {y, state};
  tape.record([=, y = place_of(y), state = place_of(state)](Tape& t) {
    Tensor dy = t.take(y);
    const Tensor dstate = t.take(state);
    if (!dy && !dstate) return;
    if (!dy) dy = t.zeros(y.shape());
    const auto dx = t.gradient(x);
    const auto dweight = t.sum(weight), dbias = t.sum(bias);
    const auto dstate_in = t.gradient(state_in);
    const Tensor weights = t.empty({shape.window + 1, shape.channels}), dtaps = t.empty(weights.shape());
    const Tensor before = t.empty({shape.window + 1, shape.channels}), dz = t.empty({shape.window + 2, shape.channels});
    launch(t.stream(), short_conv_backward,
           {shape, x.view(), weight.view(), bias.view(), state_in.view(), starts.view(), dy.view(), dstate.view(),
            dx.tensor.view(), dstate_in.tensor.view(), dweight.tensor.view(), dbias.tensor.view(), weights.view(),
            before.view(), dtaps.view(), dz.view(), dx.accumulate, dstate_in.accumulate},
           {(silu ? 3.0 : 2.0) * flops,
            moved(x, weight, bias, state_in, starts, dy, dstate, dx, dstate_in, dweight, dbias)});
  });
  return {y, state};
}

}  // namespace phasor::ops
