#include "core/ops/position_ids/position_ids.h"

#include "core/ops/position_ids/kernel.h"

namespace phasor::ops {

Tensor position_ids(Tape& tape, std::int64_t batch, std::int64_t time, std::int64_t offset, const Tensor& starts) {
  PHASOR_CHECK(!starts || starts.shape() == Shape({batch, time}), "position_ids with starts " + starts.shape().text());
  const Tensor ids = tape.empty({batch, time}, Dtype::i32);
  launch(tape.stream(), position_ids_kernel, {ids.view(), starts.view(), batch, time, offset}, {0.0, moved(ids, starts)});
  return ids;
}

}  // namespace phasor::ops
