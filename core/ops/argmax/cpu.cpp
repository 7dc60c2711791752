#include <algorithm>

#include "core/ops/argmax/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
void run(const Argmax& a) {
  auto* best = static_cast<std::int32_t*>(a.best.data);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const T* x = row<T>(a.x, r);
    best[r] = static_cast<std::int32_t>(std::max_element(x, x + a.width) - x);
  }
}

}  // namespace

const Kernel<Argmax> argmax_kernel{"argmax", run<float>, run<double>};

}  // namespace phasor::ops
