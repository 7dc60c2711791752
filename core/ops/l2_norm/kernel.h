#pragma once

#include "core/ops/vector_norm.h"

namespace phasor::ops {

extern const Kernel<VectorNormForward> l2_norm_forward;  // r = 1 / length
extern const Kernel<VectorNormBackward> l2_norm_backward;

}  // namespace phasor::ops
