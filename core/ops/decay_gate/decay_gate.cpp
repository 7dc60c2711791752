#include "core/ops/decay_gate/decay_gate.h"

#include "core/ops/decay_gate/kernel.h"

namespace phasor::ops {

Tensor decay_gate(Tape& tape, const Tensor& x, const Tensor& bias, const Tensor& log_rate) {
  const std::int64_t rows = x.rows(), groups = log_rate.size();
  PHASOR_CHECK(x.shape().rank() >= 3 && x.size(2) == groups,
               "decay_gate of " + x.shape().text() + " with rates " + log_rate.shape().text());
  PHASOR_CHECK(bias.size() == x.width() && bias.rows() == 1,
               "decay_gate bias " + bias.shape().text() + " for " + x.shape().text());
  const std::int64_t width = x.width() / groups;
  const Tensor y = tape.output(x.shape(), {&x, &bias, &log_rate});
  launch(tape.stream(), decay_gate_forward, {x.view(), bias.view(), log_rate.view(), y.view(), rows, groups, width},
         {0.0, moved(x, bias, log_rate, y)});
  if (!tape.wants(y)) return y;
  tape.record([=](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dx = t.gradient(x);
    const auto dbias = t.sum(bias), dlog_rate = t.sum(log_rate);
    launch(t.stream(), decay_gate_backward,
           {x.view(), bias.view(), log_rate.view(), y.view(), dy.view(), dx.tensor.view(), dbias.tensor.view(),
            dlog_rate.tensor.view(), rows, groups, width, dx.accumulate},
           {0.0, moved(x, bias, log_rate, y, dy, dx, dbias, dlog_rate)});
  });
  return y;
}

}  // namespace phasor::ops
