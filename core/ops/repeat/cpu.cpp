#include <algorithm>

#include "core/ops/repeat/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
void forward(const RepeatForward& a) {
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T* x = row<T>(a.x, r) + g * a.width;
      T* y = row<T>(a.y, r) + g * a.width * a.times;
      for (std::int64_t n = 0; n < a.times; ++n) std::copy_n(x, a.width, y + n * a.width);
    }
}

template <class T>
void backward(const RepeatBackward& a) {
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T* dy = row<T>(a.dy, r) + g * a.width * a.times;
      T* dx = row<T>(a.dx, r) + g * a.width;
      if (!a.accumulate) std::fill_n(dx, a.width, T(0));
      for (std::int64_t n = 0; n < a.times; ++n) {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) dx[i] += dy[n * a.width + i];
      }
    }
}

}  // namespace

const Kernel<RepeatForward> repeat_forward{"repeat.forward", forward<float>, forward<double>};
const Kernel<RepeatBackward> repeat_backward{"repeat.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
