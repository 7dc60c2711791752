#include "core/ops/linear/linear.h"

#include "core/ops/linear/kernel.h"

namespace phasor::ops {

Tensor linear(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  PHASOR_CHECK(x.shape().rank() >= 2 && weight.shape().rank() == 2 && weight.size(1) == x.width(),
               "linear weight " + weight.shape().text() + " for " + x.shape().text());
  const std::int64_t rows = x.rows(), in = x.width(), out = weight.size(0);
  PHASOR_CHECK(!bias || (bias.shape().rank() == 1 && bias.size() == out),
               "linear bias " + bias.shape().text() + " for weight " + weight.shape().text());
  const Tensor y = tape.output(x.shape().with_row({out}), {&x, &weight, &bias});
  const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
  launch(tape.stream(), linear_forward, {x.view(), weight.view(), bias.view(), y.view(), rows, in, out}, flops);
  if (!tape.wants(y)) return y;
  tape.record([=](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dx = t.gradient(x);
    const auto dweight = t.gradient(weight);
    const auto dbias = t.gradient(bias);
    if (dbias.tensor && !dbias.accumulate) zero(dbias.tensor);
    const double products = (dx.tensor ? 1.0 : 0.0) + (dweight.tensor ? 1.0 : 0.0);
    launch(t.stream(), linear_backward,
           {x.view(), weight.view(), dy.view(), dx.tensor.view(), dweight.tensor.view(), dbias.tensor.view(), rows, in,
            out, dx.accumulate, dweight.accumulate},
           products * flops);
  });
  return y;
}

}  // namespace phasor::ops
