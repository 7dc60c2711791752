#pragma once

#include "core/ops/vector_norm.h"

namespace phasor::ops {

extern const Kernel<VectorNormForward> sum_norm_forward;  // r = 1 / sum
extern const Kernel<VectorNormBackward> sum_norm_backward;

}  // namespace phasor::ops
