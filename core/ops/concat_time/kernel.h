#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

namespace phasor::ops {

/// Tokens first_from .. first_from+count-1 of every row of the batch, to those from first_to on.
struct CopyTime {
  View from, to;  // rows [batch * from_time] and [batch * to_time]
  std::int64_t batch, from_time, first_from, to_time, first_to, count, width;
  bool accumulate;
};

/// Zeros at tokens first .. first+count-1.
struct ClearTime {
  View to;
  std::int64_t batch, time, first, count, width;
};

extern const Kernel<CopyTime> copy_time;
extern const Kernel<ClearTime> clear_time;

}  // namespace phasor::ops
