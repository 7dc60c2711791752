#pragma once

#include "core/graph/launch.h"
#include "core/tensor/view.h"

// The kernels of core/graph/accumulate.h and total.h.

namespace phasor {

struct CopyRows {
  View from, to;
  std::int64_t rows, width;
  bool accumulate;
};

struct AddRows {
  View a, b, out;
  std::int64_t rows, width;
};

struct ZeroRows {
  View to;
  std::int64_t rows, width;
};

struct Total {
  View values;
  std::int64_t count;
  double* sum;  // added to
};

extern const Kernel<CopyRows> copy_rows;
extern const Kernel<AddRows> add_rows;
extern const Kernel<ZeroRows> zero_rows;  // f32 stands for every type of four bytes
extern const Kernel<Total> total_values;

}  // namespace phasor
