#include "core/ops/argmax/argmax.h"

#include "core/ops/argmax/kernel.h"

namespace phasor::ops {

Tensor argmax(Tape& tape, const Tensor& logits) {
  PHASOR_CHECK(logits.width() > 0, "argmax of " + logits.shape().text());
  const Tensor best = tape.empty({logits.rows()}, Dtype::i32);
  launch(tape.stream(), argmax_kernel, {logits.view(), best.view(), logits.rows(), logits.width()},
         {0.0, moved(logits, best)});
  return best;
}

}  // namespace phasor::ops
