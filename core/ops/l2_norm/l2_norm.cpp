#include "core/ops/l2_norm/l2_norm.h"

#include "core/ops/l2_norm/kernel.h"

namespace phasor::ops {

Tensor l2_norm(Tape& tape, const Tensor& x, double eps) {
  return vector_norm(tape, x, eps, "l2_norm", l2_norm_forward, l2_norm_backward);
}

}  // namespace phasor::ops
