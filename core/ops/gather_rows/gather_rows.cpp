#include "core/ops/gather_rows/gather_rows.h"

#include "core/graph/place.h"
#include "core/ops/gather_rows/kernel.h"

namespace phasor::ops {

namespace {

#ifndef NDEBUG
void check_range(const Tensor& index, std::int64_t rows) {
  for (std::int64_t n = 0; n < index.size(); ++n) {
    const std::int32_t at = index.as<std::int32_t>()[n];
    PHASOR_CHECK(at < rows, "gather_rows index " + std::to_string(at) + " of " + std::to_string(rows) + " rows");
  }
}
#else
void check_range(const Tensor&, std::int64_t) {}
#endif

}  // namespace

Tensor gather_rows(Tape& tape, const Tensor& x, const Tensor& index) {
  PHASOR_CHECK(x.shape().rank() == 2 || x.shape().rank() == 3,
               "gather_rows of rows [.., dim], found " + x.shape().text());
  PHASOR_CHECK(
      index.dtype() == Dtype::i32 && index.shape().rank() == 1,
      "gather_rows index i32 [count], found " + std::string(name_of(index.dtype())) + " " + index.shape().text());
  if (tape.stream().device == nullptr && !tape.stream().dry) check_range(index, x.rows());
  const std::int64_t count = index.size(), dim = x.width();
  const Tensor y = tape.output({count, dim}, {&x});
  launch(tape.stream(), gather_rows_forward, {x.view(), index.view(), y.view(), count, dim},
         {0.0, moved(index, y, y)});
  if (!tape.wants(y)) return y;
  tape.record([=, x = place_of(x), y = place_of(y)](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dx = t.sum(x);
    launch(t.stream(), gather_rows_backward, {index.view(), dy.view(), dx.tensor.view(), count, dim, x.rows()},
           {0.0, moved(index, dy) + 2 * bytes_of(dy)});
  });
  return y;
}

}  // namespace phasor::ops
