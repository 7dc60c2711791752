#include "core/ops/gather_rows/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
void forward(const GatherRowsForward& a) {
  const auto* index = static_cast<const std::int32_t*>(a.index.data);
  for (std::int64_t n = 0; n < a.count; ++n) {
    T* y = row<T>(a.y, n);
    if (index[n] < 0) {
#pragma omp simd
      for (std::int64_t i = 0; i < a.dim; ++i) y[i] = T(0);
      continue;
    }
    const T* x = row<T>(a.x, index[n]);
#pragma omp simd
    for (std::int64_t i = 0; i < a.dim; ++i) y[i] = x[i];
  }
}

template <class T>
void backward(const GatherRowsBackward& a) {
  const auto* index = static_cast<const std::int32_t*>(a.index.data);
  for (std::int64_t n = 0; n < a.count; ++n) {
    if (index[n] < 0) continue;
    const T* dy = row<T>(a.dy, n);
    T* dx = row<T>(a.dx, index[n]);
#pragma omp simd
    for (std::int64_t i = 0; i < a.dim; ++i) dx[i] += dy[i];
  }
}

}  // namespace

const Kernel<GatherRowsForward> gather_rows_forward{"gather_rows.forward", forward<float>, forward<double>};
const Kernel<GatherRowsBackward> gather_rows_backward{"gather_rows.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
