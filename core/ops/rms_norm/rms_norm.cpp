#include "core/ops/rms_norm/rms_norm.h"

#include "core/graph/place.h"
#include "core/ops/rms_norm/kernel.h"

namespace phasor::ops {

Tensor rms_norm(Tape& tape, const Tensor& x, const Tensor& weight, double eps) {
  const std::int64_t width = x.size(-1);
  PHASOR_CHECK(width > 0, "rms_norm needs a last axis with elements");
  PHASOR_CHECK(!weight || weight.size() == width || weight.size() == x.width(),
               "rms_norm weight " + weight.shape().text() + " for " + x.shape().text());
  const std::int64_t rows = x.rows(), groups = x.width() / width, weight_step = weight.size() == width ? 0 : width;
  const Tensor y = tape.output(x.shape(), {&x, &weight});
  const Tensor inverse = tape.empty({rows, groups});
  launch(tape.stream(), rms_norm_forward,
         {x.view(), weight.view(), y.view(), inverse.view(), rows, groups, width, weight_step, eps},
         {0.0, moved(x, weight, y, inverse)});
  if (!tape.wants(y)) return y;
  tape.record([=, y = place_of(y)](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dx = t.gradient(x);
    const auto dweight = t.sum(weight);
    launch(t.stream(), rms_norm_backward,
           {x.view(), weight.view(), inverse.view(), dy.view(), dx.tensor.view(), dweight.tensor.view(), rows, groups,
            width, weight_step, dx.accumulate},
           {0.0, moved(x, weight, inverse, dy, dx, dweight)});
  });
  return y;
}

}  // namespace phasor::ops
