#include "core/ops/gated_rms_norm/gated_rms_norm.h"

#include "core/graph/place.h"
#include "core/ops/gated_rms_norm/kernel.h"

namespace phasor::ops {

Tensor gated_rms_norm(Tape& tape, const Tensor& x, const Tensor& gate, const Tensor& weight, double eps, GateKind kind,
                      GateOrder order) {
  const std::int64_t width = x.size(-1);
  PHASOR_CHECK(width > 0, "gated_rms_norm needs a last axis with elements, found " + x.shape().text());
  PHASOR_CHECK(gate.rows() == x.rows() && gate.width() == x.width(),
               "gated_rms_norm gate " + gate.shape().text() + " for " + x.shape().text());
  PHASOR_CHECK(!weight || (weight.shape().rank() == 1 && weight.size() == width),
               "gated_rms_norm weight " + weight.shape().text() + " for " + x.shape().text());
  const std::int64_t rows = x.rows(), groups = x.width() / width;
  const bool silu = kind == GateKind::silu, norm_first = order == GateOrder::norm_first;
  const Tensor y = tape.output(x.shape(), {&x, &gate, &weight});
  const Tensor inverse = tape.empty({rows, groups});
  launch(tape.stream(), gated_rms_norm_forward,
         {x.view(), gate.view(), weight.view(), y.view(), inverse.view(), rows, groups, width, eps, silu, norm_first},
         {0.0, moved(x, gate, weight, y, inverse)});
  if (!tape.wants(y)) return y;
  tape.record([=, y = place_of(y)](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dx = t.gradient(x);
    const auto dgate = t.gradient(gate);
    const auto dweight = t.sum(weight);
    const Tensor scratch = t.empty({2, width});
    launch(t.stream(), gated_rms_norm_backward,
           {x.view(), gate.view(), weight.view(), inverse.view(), dy.view(), dx.tensor.view(), dgate.tensor.view(),
            dweight.tensor.view(), scratch.view(), rows, groups, width, silu, norm_first, dx.accumulate,
            dgate.accumulate},
           {0.0, moved(x, gate, weight, inverse, dy, dx, dgate, dweight)});
  });
  return y;
}

}  // namespace phasor::ops
