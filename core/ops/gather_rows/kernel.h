#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

struct GatherRowsForward {
  View x, index, y;
  std::int64_t count, dim;
};

struct GatherRowsBackward {
  View index, dy, dx;  // dx is always accumulated
  std::int64_t count, dim;
  std::int64_t rows;  // of dx
};

extern const Kernel<GatherRowsForward> gather_rows_forward;
extern const Kernel<GatherRowsBackward> gather_rows_backward;

}  // namespace phasor::ops
