#include "core/ops/sum_norm/sum_norm.h"

#include "core/ops/sum_norm/kernel.h"

namespace phasor::ops {

Tensor sum_norm(Tape& tape, const Tensor& x, double eps) {
  return vector_norm(tape, x, eps, "sum_norm", sum_norm_forward, sum_norm_backward);
}

}  // namespace phasor::ops
