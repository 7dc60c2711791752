#include "core/ops/weight_norm/weight_norm.h"

#include "core/graph/place.h"
#include "core/ops/weight_norm/kernel.h"

namespace phasor::ops {

namespace {

struct Layout {
  const Kernel<WeightNormForward>& forward;
  const Kernel<WeightNormBackward>& backward;
  std::int64_t groups, length, width;
  Shape norm;
};

Tensor normed(Tape& tape, const Tensor& w, const Tensor& scale, const Layout& layout) {
  const auto [forward, backward, groups, length, width, norm_shape] = layout;
  PHASOR_CHECK(scale.size() == groups, "weight_norm scale " + scale.shape().text() + " for " + w.shape().text());
  const Tensor y = tape.output(w.shape(), {&w, &scale});
  const Tensor norm = tape.empty(norm_shape);
  launch(tape.stream(), forward, {w.view(), scale.view(), y.view(), norm.view(), groups, length, width},
         {0.0, moved(w, scale, y, norm)});
  if (!tape.wants(y)) return y;
  tape.record([=, y = place_of(y), &backward = layout.backward, groups = groups, length = length, width = width](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dw = t.gradient(w), dscale = t.sum(scale);
    const Tensor dots = t.empty({1, width});
    launch(t.stream(), backward,
           {w.view(), scale.view(), norm.view(), dy.view(), dw.tensor.view(), dscale.tensor.view(), dots.view(), groups,
            length, width, dw.accumulate},
           {0.0, moved(w, scale, norm, dy, dw, dscale)});
  });
  return y;
}

}  // namespace

Tensor weight_norm_rows(Tape& tape, const Tensor& w, const Tensor& scale) {
  PHASOR_CHECK(w.shape().rank() == 2, "weight_norm_rows of " + w.shape().text() + ", expected [out, in]");
  return normed(tape, w, scale,
                {weight_norm_rows_forward, weight_norm_rows_backward, 1, w.size(0), w.size(1), {w.size(0), 1}});
}

Tensor weight_norm_columns(Tape& tape, const Tensor& w, const Tensor& scale) {
  PHASOR_CHECK(w.shape().rank() == 3, "weight_norm_columns of " + w.shape().text() + ", expected [heads, in, out]");
  return normed(tape, w, scale,
                {weight_norm_columns_forward,
                 weight_norm_columns_backward,
                 w.size(0),
                 w.size(1),
                 w.size(2),
                 {w.size(0), w.size(2)}});
}

}  // namespace phasor::ops
