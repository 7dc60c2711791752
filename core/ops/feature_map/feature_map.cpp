#include "core/ops/feature_map/feature_map.h"

#include "core/graph/place.h"
#include "core/ops/feature_map/kernel.h"

namespace phasor::ops {

Tensor positive_features(Tape& tape, const Tensor& z, const Tensor& x) {
  PHASOR_CHECK(x.shape().rank() == 4 && z.shape() == x.shape().with_row({x.size(2), z.size(-1)}),
               "positive_features of " + x.shape().text() + " with products " + z.shape().text());
  const std::int64_t rows = x.rows(), heads = x.size(2), width = x.size(3), features = z.size(3);
  const Tensor y = tape.output(z.shape(), {&z, &x});
  launch(tape.stream(), positive_features_forward, {z.view(), x.view(), y.view(), rows, heads, width, features},
         {0.0, moved(z, x, y)});
  if (!tape.wants(y)) return y;
  tape.record([=, z = place_of(z)](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dz = t.gradient(z), dx = t.gradient(x);
    launch(t.stream(), positive_features_backward,
           {x.view(), y.view(), dy.view(), dz.tensor.view(), dx.tensor.view(), rows, heads, width, features,
            dz.accumulate, dx.accumulate},
           {0.0, moved(y, dy, dz, dx) + (dx.tensor ? bytes_of(x) : 0)});
  });
  return y;
}

Tensor fourier_features(Tape& tape, const Tensor& z) {
  PHASOR_CHECK(z.shape().rank() == 4, "fourier_features of " + z.shape().text());
  const std::int64_t rows = z.rows(), heads = z.size(2), features = z.size(3);
  const Tensor y = tape.output(z.shape().with_row({heads, 2 * features}), {&z});
  launch(tape.stream(), fourier_features_forward, {z.view(), y.view(), rows, heads, features}, {0.0, moved(z, y)});
  if (!tape.wants(y)) return y;
  tape.record([=, z = place_of(z)](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dz = t.gradient(z);
    launch(t.stream(), fourier_features_backward,
           {y.view(), dy.view(), dz.tensor.view(), rows, heads, features, dz.accumulate}, {0.0, moved(y, dy, dz)});
  });
  return y;
}

Tensor cosine_features(Tape& tape, const Tensor& x, std::int64_t max_length, std::int64_t offset,
                       const Tensor& starts) {
  PHASOR_CHECK(x.shape().rank() == 4 && max_length > 0, "cosine_features of " + x.shape().text());
  const std::int64_t batch = x.size(0), time = x.size(1), heads = x.size(2), width = x.size(3);
  PHASOR_CHECK(
      !starts || (starts.shape() == Shape({batch, time}) && starts.dtype() == Dtype::i32),
      "cosine_features starts " + starts.shape().text() + " " + name_of(starts.dtype()) + " for " + x.shape().text());
  if (!starts && offset + time > max_length)
    throw UserError("cosine weights end at max_length " + std::to_string(max_length) + ", found position " +
                    std::to_string(offset + time - 1));
  const Tensor y = tape.output(x.shape().with_row({heads, 2 * width}), {&x});
  CosineFeatures args{x.view(), starts.view(), y.view(), {}, {}, batch, time, heads, width, max_length, offset, false};
  launch(tape.stream(), cosine_features_forward, args, {0.0, moved(x, starts, y)});
  if (!tape.wants(y)) return y;
  tape.record([=, y = place_of(y), keep = starts](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dx = t.gradient(x);
    CosineFeatures back = args;
    back.dy = dy.view();
    back.dx = dx.tensor.view();
    back.accumulate = dx.accumulate;
    launch(t.stream(), cosine_features_backward, back, {0.0, moved(x, keep, dy, dx)});
  });
  return y;
}

}  // namespace phasor::ops
