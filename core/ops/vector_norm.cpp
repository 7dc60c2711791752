#include "core/ops/vector_norm.h"

#include <string>

#include "core/graph/place.h"
#include "core/graph/tape.h"

namespace phasor::ops {

Tensor vector_norm(Tape& tape, const Tensor& x, double eps, const char* name, const Kernel<VectorNormForward>& forward,
                   const Kernel<VectorNormBackward>& backward) {
  const std::int64_t width = x.size(-1);
  PHASOR_CHECK(width > 0, std::string(name) + " needs a last axis with elements, found " + x.shape().text());
  const std::int64_t rows = x.rows(), groups = x.width() / width;
  const Tensor y = tape.output(x.shape(), {&x});
  const Tensor inverse = tape.empty({rows, groups});
  launch(tape.stream(), forward, {x.view(), y.view(), inverse.view(), rows, groups, width, eps},
         {0.0, moved(x, y, inverse)});
  if (!tape.wants(y)) return y;
  tape.record([=, x = place_of(x), kernel = &backward](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dx = t.gradient(x);
    launch(t.stream(), *kernel,
           {y.view(), inverse.view(), dy.view(), dx.tensor.view(), rows, groups, width, dx.accumulate},
           {0.0, moved(y, inverse, dy, dx)});
  });
  return y;
}

}  // namespace phasor::ops
