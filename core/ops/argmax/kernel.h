#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct Argmax {
  View x, best;  // best i32 [rows]
  std::int64_t rows, width;
};

extern const Kernel<Argmax> argmax_kernel;

}  // namespace phasor::ops
