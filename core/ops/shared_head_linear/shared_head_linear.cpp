#include "core/ops/shared_head_linear/shared_head_linear.h"

#include "core/graph/place.h"
#include "core/ops/shared_head_linear/kernel.h"

namespace phasor::ops {

Tensor shared_head_linear(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  PHASOR_CHECK(x.shape().rank() == 4 && weight.shape().rank() == 2 && weight.size(1) == x.size(3),
               "shared_head_linear of " + x.shape().text() + " with weight " + weight.shape().text());
  const std::int64_t rows = x.rows(), heads = x.size(2), in = x.size(3), out = weight.size(0);
  PHASOR_CHECK(!bias || (bias.shape().rank() == 1 && bias.size() == out),
               "shared_head_linear bias " + bias.shape().text() + " for weight " + weight.shape().text());
  const Tensor y = tape.output(x.shape().with_row({heads, out}), {&x, &weight, &bias});
  const double flops = 2.0 * static_cast<double>(x.size()) * static_cast<double>(out);
  launch(tape.stream(), shared_head_linear_forward,
         {x.view(), weight.view(), bias.view(), y.view(), rows, heads, in, out, tape.stream().products},
         {flops, moved(x, weight, bias, y)});
  if (!tape.wants(y)) return y;
  tape.record([=, y = place_of(y)](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dx = t.gradient(x), dweight = t.sum(weight), dbias = t.sum(bias);
    const double products = (dx.tensor ? 1.0 : 0.0) + (dweight.tensor ? 1.0 : 0.0);
    launch(t.stream(), shared_head_linear_backward,
           {x.view(), weight.view(), dy.view(), dx.tensor.view(), dweight.tensor.view(), dbias.tensor.view(), rows,
            heads, in, out, dx.accumulate, t.stream().products},
           {products * flops,
            moved(dy, dx, dweight, dbias) + (dx.tensor ? bytes_of(weight) : 0) + (dweight.tensor ? bytes_of(x) : 0)});
  });
  return y;
}

}  // namespace phasor::ops
