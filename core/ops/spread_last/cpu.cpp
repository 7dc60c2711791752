#include "core/ops/spread_last/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
void forward(const SpreadLastForward& a) {
  for (std::int64_t b = 0; b < a.batch; ++b) {
    const T* last = row<T>(a.x, (b + 1) * a.time - 1);
    for (std::int64_t t = 0; t < a.time; ++t) {
      const T* shift = row<T>(a.table, t);
      T* y = row<T>(a.y, b * a.time + t);
#pragma omp simd
      for (std::int64_t i = 0; i < a.dim; ++i) y[i] = last[i] + shift[i];
    }
  }
}

template <class T>
void backward(const SpreadLastBackward& a) {
  for (std::int64_t b = 0; b < a.batch; ++b) {
    T* last = row<T>(a.dx, (b + 1) * a.time - 1);
    for (std::int64_t t = 0; t < a.time; ++t) {
      const T* dy = row<T>(a.dy, b * a.time + t);
#pragma omp simd
      for (std::int64_t i = 0; i < a.dim; ++i) last[i] += dy[i];
    }
  }
}

}  // namespace

const Kernel<SpreadLastForward> spread_last_forward{"spread_last.forward", forward<float>, forward<double>};
const Kernel<SpreadLastBackward> spread_last_backward{"spread_last.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
