#include "core/ops/sum_norm/sum_norm.h"

#include "core/ops/sum_norm/kernel.h"

namespace phasor::ops {

Tensor sum_norm(Tape& tape, const Tensor& x, double eps) {
  const std::int64_t width = x.size(-1);
  PHASOR_CHECK(width > 0, "sum_norm needs a last axis with elements, found " + x.shape().text());
  const std::int64_t rows = x.rows(), groups = x.width() / width;
  const Tensor y = tape.output(x.shape(), {&x});
  const Tensor inverse = tape.empty({rows, groups});
  launch(tape.stream(), sum_norm_forward, {x.view(), y.view(), inverse.view(), rows, groups, width, eps},
         {0.0, moved(x, y, inverse)});
  if (!tape.wants(y)) return y;
  tape.record([=](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dx = t.gradient(x);
    launch(t.stream(), sum_norm_backward,
           {y.view(), inverse.view(), dy.view(), dx.tensor.view(), rows, groups, width, dx.accumulate},
           {0.0, moved(y, inverse, dy, dx)});
  });
  return y;
}

}  // namespace phasor::ops
