#include "core/ops/linear/linear.h"

#include "core/graph/accumulate.h"
#include "core/graph/place.h"
#include "core/ops/linear/kernel.h"

namespace phasor::ops {

namespace {

/// The weight for dx = dy W. With few rows oneDNN reads it where it is, down columns whose elements fall into the same
/// sets of the first-level cache when its rows are multiples of 2048 bytes: at half the speed. A copy with room between
/// the rows costs a tenth of what it saves (docs/performance.md).
Tensor readable_by_columns(Tape& tape, const Tensor& weight, std::int64_t rows) {
  constexpr std::int64_t period = 2048, few = 1024;
  if (weight.width() * static_cast<std::int64_t>(size_of(weight.dtype())) % period != 0 || rows >= few) return weight;
  const Tensor spaced = Tensor::spaced(tape.arena(), weight.dtype(), weight.shape());
  copy(tape.stream(), weight, spaced);
  return spaced;
}

}  // namespace

Tensor linear(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  PHASOR_CHECK(x.shape().rank() >= 2 && weight.shape().rank() == 2 && weight.size(1) == x.width(),
               "linear weight " + weight.shape().text() + " for " + x.shape().text());
  const std::int64_t rows = x.rows(), in = x.width(), out = weight.size(0);
  PHASOR_CHECK(!bias || (bias.shape().rank() == 1 && bias.size() == out),
               "linear bias " + bias.shape().text() + " for weight " + weight.shape().text());
  const Tensor y = tape.output(x.shape().with_row({out}), {&x, &weight, &bias});
  const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
  launch(tape.stream(), linear_forward,
         {x.view(), weight.view(), bias.view(), y.view(), rows, in, out, tape.stream().products},
         {flops, moved(x, weight, bias, y)});
  if (!tape.wants(y)) return y;
  tape.record([=, y = place_of(y)](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dx = t.gradient(x);
    const auto dweight = t.gradient(weight);
    const auto dbias = t.sum(bias);
    const Tensor w = dx.tensor ? readable_by_columns(t, weight, rows) : weight;
    const double products = (dx.tensor ? 1.0 : 0.0) + (dweight.tensor ? 1.0 : 0.0);
    launch(t.stream(), linear_backward,
           {x.view(), w.view(), dy.view(), dx.tensor.view(), dweight.tensor.view(), dbias.tensor.view(), rows, in, out,
            dx.accumulate, dweight.accumulate, t.stream().products},
           {products * flops,
            moved(dy, dx, dweight, dbias) + (dx.tensor ? bytes_of(w) : 0) + (dweight.tensor ? bytes_of(x) : 0)});
  });
  return y;
}

}  // namespace phasor::ops
