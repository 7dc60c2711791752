#include "core/ops/swiglu/swiglu.h"

#include "core/graph/place.h"
#include "core/ops/swiglu/kernel.h"

namespace phasor::ops {

Tensor swiglu(Tape& tape, const Tensor& gate, const Tensor& up) {
  PHASOR_CHECK(gate.rows() == up.rows() && gate.width() == up.width(),
               "swiglu of gate " + gate.shape().text() + " and up " + up.shape().text());
  const std::int64_t rows = gate.rows(), width = gate.width();
  const Tensor y = tape.output(gate.shape(), {&gate, &up});
  launch(tape.stream(), swiglu_forward, {gate.view(), up.view(), y.view(), rows, width}, {0.0, moved(gate, up, y)});
  if (!tape.wants(y)) return y;
  tape.record([=, y = place_of(y)](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dgate = t.gradient(gate);
    const auto dup = t.gradient(up);
    launch(t.stream(), swiglu_backward,
           {gate.view(), up.view(), dy.view(), dgate.tensor.view(), dup.tensor.view(), rows, width, dgate.accumulate,
            dup.accumulate},
           {0.0, moved(gate, up, dy, dgate, dup)});
  });
  return y;
}

}  // namespace phasor::ops
