#include "core/ops/repeat/repeat.h"

#include "core/graph/place.h"
#include "core/ops/repeat/kernel.h"

namespace phasor::ops {

Tensor repeat(Tape& tape, const Tensor& x, std::int64_t times) {
  PHASOR_CHECK(x.shape().rank() == 4 && times >= 1, "repeat of " + x.shape().text() + ", " + std::to_string(times) +
                                                        " times; expected [batch, time, heads, n]");
  const std::int64_t rows = x.rows(), groups = x.size(2), width = x.size(3);
  const Tensor y = tape.output({x.size(0), x.size(1), groups, times * width}, {&x});
  launch(tape.stream(), repeat_forward, {x.view(), y.view(), rows, groups, width, times}, {0.0, moved(x, y)});
  if (!tape.wants(y)) return y;
  tape.record([=, x = place_of(x), y = place_of(y)](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dx = t.gradient(x);
    launch(t.stream(), repeat_backward, {dy.view(), dx.tensor.view(), rows, groups, width, times, dx.accumulate},
           {0.0, moved(dy, dx)});
  });
  return y;
}

}  // namespace phasor::ops
