#include "core/ops/spread_last/spread_last.h"

#include "core/graph/place.h"
#include "core/ops/spread_last/kernel.h"

namespace phasor::ops {

Tensor spread_last(Tape& tape, const Tensor& x, const Tensor& table) {
  PHASOR_CHECK(x.shape().rank() == 3 && x.size(1) > 0, "spread_last of rows [batch, time, dim], found " + x.shape().text());
  const std::int64_t batch = x.size(0), time = x.size(1), dim = x.size(2);
  PHASOR_CHECK(table.shape().rank() == 2 && table.size(0) >= time && table.size(1) == dim && !tape.wants(table),
               "spread_last table " + table.shape().text() + " for " + x.shape().text() + ", expected a constant");
  const Tensor y = tape.output(x.shape(), {&x});
  const std::int64_t last_bytes = bytes_of(y) / time, table_bytes = time * dim * static_cast<std::int64_t>(size_of(y.dtype()));
  launch(tape.stream(), spread_last_forward, {x.view(), table.view(), y.view(), batch, time, dim},
         {0.0, moved(y) + last_bytes + table_bytes});
  if (!tape.wants(y)) return y;
  tape.record([=, x = place_of(x), y = place_of(y)](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dx = t.sum(x);
    launch(t.stream(), spread_last_backward, {dy.view(), dx.tensor.view(), batch, time, dim},
           {0.0, moved(dy) + 2 * last_bytes});
  });
  return y;
}

}  // namespace phasor::ops
