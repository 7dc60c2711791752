#include "core/ops/head_linear/head_linear.h"

#include "core/graph/place.h"
#include "core/ops/head_linear/kernel.h"

namespace phasor::ops {

Tensor head_linear(Tape& tape, const Tensor& x, const Tensor& weight) {
  PHASOR_CHECK(
      x.shape().rank() == 4 && weight.shape().rank() == 3 && weight.size(0) == x.size(2) && weight.size(1) == x.size(3),
      "head_linear of " + x.shape().text() + " with weight " + weight.shape().text());
  const std::int64_t rows = x.rows(), heads = x.size(2), in = x.size(3), out = weight.size(2);
  const Tensor y = tape.output(x.shape().with_row({heads, out}), {&x, &weight});
  const double flops = 2.0 * static_cast<double>(x.size()) * static_cast<double>(out);
  launch(tape.stream(), head_linear_forward,
         {x.view(), weight.view(), y.view(), rows, heads, in, out, tape.stream().products},
         {flops, moved(x, weight, y)});
  if (!tape.wants(y)) return y;
  tape.record([=, y = place_of(y)](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dx = t.gradient(x), dweight = t.sum(weight);
    const double products = (dx.tensor ? 1.0 : 0.0) + (dweight.tensor ? 1.0 : 0.0);
    launch(t.stream(), head_linear_backward,
           {x.view(), weight.view(), dy.view(), dx.tensor.view(), dweight.tensor.view(), rows, heads, in, out,
            dx.accumulate, t.stream().products},
           {products * flops,
            moved(dy, dx, dweight) + (dx.tensor ? bytes_of(weight) : 0) + (dweight.tensor ? bytes_of(x) : 0)});
  });
  return y;
}

}  // namespace phasor::ops
