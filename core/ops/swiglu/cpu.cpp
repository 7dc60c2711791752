#include <algorithm>

#include "core/ops/swiglu/kernel.h"
#include "core/ops/vector_math.h"

namespace phasor::ops {

namespace {

template <class T>
void forward(const SwigluForward& a) {
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const T* gate = row<T>(a.gate, r);
    const T* up = row<T>(a.up, r);
    T* y = row<T>(a.y, r);
#pragma omp simd
    for (std::int64_t i = 0; i < a.width; ++i) y[i] = math::silu(gate[i]) * up[i];
  }
}

template <class T>
void store(const T* from, T* to, std::int64_t size, bool accumulate) {
  if (accumulate) {
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) to[i] += from[i];
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) to[i] = from[i];
  }
}

// Both gradients share one sigmoid; they pass through a piece of stack, so that one loop serves whatever is wanted.
template <class T>
void backward(const SwigluBackward& a) {
  constexpr std::int64_t piece = 256;
  T dgate[piece], dup[piece];
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t start = 0; start < a.width; start += piece) {
      const std::int64_t size = std::min(piece, a.width - start);
      const T* gate = row<T>(a.gate, r) + start;
      const T* up = row<T>(a.up, r) + start;
      const T* dy = row<T>(a.dy, r) + start;
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) {
        const T s = math::sigmoid(gate[i]);
        const T silu = gate[i] * s;
        dgate[i] = dy[i] * up[i] * (s + silu * (T(1) - s));
        dup[i] = dy[i] * silu;
      }
      if (a.dgate.data != nullptr) store(dgate, row<T>(a.dgate, r) + start, size, a.accumulate_gate);
      if (a.dup.data != nullptr) store(dup, row<T>(a.dup, r) + start, size, a.accumulate_up);
    }
  }
}

}  // namespace

const Kernel<SwigluForward> swiglu_forward{"swiglu.forward", forward<float>, forward<double>};
const Kernel<SwigluBackward> swiglu_backward{"swiglu.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
