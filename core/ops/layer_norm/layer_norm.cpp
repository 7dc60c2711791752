#include "core/ops/layer_norm/layer_norm.h"

#include "core/graph/place.h"
#include "core/ops/layer_norm/kernel.h"

namespace phasor::ops {

Tensor layer_norm(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  const std::int64_t width = x.size(-1);
  PHASOR_CHECK(width > 0, "layer_norm needs a last axis with elements");
  PHASOR_CHECK(!weight || weight.size() == width, "layer_norm weight " + weight.shape().text() + " for " + x.shape().text());
  PHASOR_CHECK(!bias || bias.size() == width, "layer_norm bias " + bias.shape().text() + " for " + x.shape().text());
  const std::int64_t rows = x.rows(), groups = x.width() / width;
  const Tensor y = tape.output(x.shape(), {&x, &weight, &bias});
  const Tensor stats = tape.empty({rows, 2 * groups});
  launch(tape.stream(), layer_norm_forward,
         {x.view(), weight.view(), bias.view(), y.view(), stats.view(), rows, groups, width, eps},
         {0.0, moved(x, weight, bias, y, stats)});
  if (!tape.wants(y)) return y;
  tape.record([=, y = place_of(y)](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dx = t.gradient(x);
    const auto dweight = t.sum(weight);
    const auto dbias = t.sum(bias);
    launch(t.stream(), layer_norm_backward,
           {x.view(), weight.view(), stats.view(), dy.view(), dx.tensor.view(), dweight.tensor.view(), dbias.tensor.view(),
            rows, groups, width, dx.accumulate},
           {0.0, moved(x, weight, stats, dy, dx, dweight, dbias)});
  });
  return y;
}

}  // namespace phasor::ops
