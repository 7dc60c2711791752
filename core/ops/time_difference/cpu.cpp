#include "core/ops/time_difference/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
void copy_row(const T* from, T* to, std::int64_t width) {
  if (from == nullptr) {
    for (std::int64_t i = 0; i < width; ++i) to[i] = T(0);
    return;
  }
#pragma omp simd
  for (std::int64_t i = 0; i < width; ++i) to[i] = from[i];
}

bool begins(const View& starts, std::int64_t b, std::int64_t t) {
  return starts.data != nullptr && row<std::int32_t>(starts, b)[t] == t;
}

template <class T>
void forward(const TimeDifferenceForward& a) {
  for (std::int64_t b = 0; b < a.batch; ++b) {
    const T* last = a.state_in.data != nullptr ? row<T>(a.state_in, b) : nullptr;
    for (std::int64_t t = 0; t < a.time; ++t) {
      const T* x = row<T>(a.x, b * a.time + t);
      T* y = row<T>(a.y, b * a.time + t);
      if (last == nullptr || begins(a.starts, b, t)) {
        copy_row(x, y, a.width);
      } else {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) y[i] = x[i] - last[i];
      }
      last = x;
    }
    if (a.state_out.data != nullptr) copy_row(last, row<T>(a.state_out, b), a.width);
  }
}

/// to (+)= plus - minus, where either may be absent.
template <class T>
void put(const T* plus, const T* minus, T* to, std::int64_t width, bool accumulate) {
  if (!accumulate) copy_row(plus, to, width);
  if (accumulate && plus != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) to[i] += plus[i];
  }
  if (minus != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) to[i] -= minus[i];
  }
}

template <class T>
void backward(const TimeDifferenceBackward& a) {
  for (std::int64_t b = 0; b < a.batch; ++b) {
    const auto dy = [&](std::int64_t t) -> const T* {
      return a.dy.data != nullptr && t < a.time ? row<T>(a.dy, b * a.time + t) : nullptr;
    };
    // dy of a step that read the one before it.
    const auto reading = [&](std::int64_t t) -> const T* {
      return t < a.time && !begins(a.starts, b, t) ? dy(t) : nullptr;
    };
    const T* dstate = a.dstate_out.data != nullptr ? row<T>(a.dstate_out, b) : nullptr;
    for (std::int64_t t = 0; t < a.time && a.dx.data != nullptr; ++t) {
      T* dx = row<T>(a.dx, b * a.time + t);
      put(dy(t), reading(t + 1), dx, a.width, a.accumulate_dx);
      if (t + 1 == a.time) put<T>(dstate, nullptr, dx, a.width, true);
    }
    // Without any step the state passes through.
    if (a.dstate_in.data != nullptr)
      put(a.time == 0 ? dstate : nullptr, reading(0), row<T>(a.dstate_in, b), a.width, a.accumulate_dstate_in);
  }
}

}  // namespace

const Kernel<TimeDifferenceForward> time_difference_forward{"time_difference.forward", forward<float>, forward<double>};
const Kernel<TimeDifferenceBackward> time_difference_backward{"time_difference.backward", backward<float>,
                                                              backward<double>};

}  // namespace phasor::ops
