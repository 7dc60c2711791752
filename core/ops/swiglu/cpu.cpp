#include <algorithm>

#include "core/ops/gradient_target.h"
#include "core/ops/prefetch.h"
#include "core/ops/swiglu/kernel.h"
#include "core/ops/vector_math.h"

namespace phasor::ops {

namespace {

constexpr std::int64_t soon = 2;  // rows from the one at work to the one asked for

template <class T>
void forward(const SwigluForward& a) {
  for (std::int64_t r = 0; r < a.rows; ++r) {
    prefetch_row<false, T>(a.gate, r + soon, a.rows, a.width);
    prefetch_row<false, T>(a.up, r + soon, a.rows, a.width);
    prefetch_row<true, T>(a.y, r + soon, a.rows, a.width);
    const T* gate = row<T>(a.gate, r);
    const T* up = row<T>(a.up, r);
    T* y = row<T>(a.y, r);
#pragma omp simd
    for (std::int64_t i = 0; i < a.width; ++i) y[i] = math::silu(gate[i]) * up[i];
  }
}

// Both gradients share one sigmoid.
template <class T>
void backward(const SwigluBackward& a) {
  constexpr std::int64_t piece = 256;
  T spare_gate[piece], spare_up[piece];
  for (std::int64_t r = 0; r < a.rows; ++r) {
    prefetch_row<false, T>(a.gate, r + soon, a.rows, a.width);
    prefetch_row<false, T>(a.up, r + soon, a.rows, a.width);
    prefetch_row<false, T>(a.dy, r + soon, a.rows, a.width);
    prefetch_row<true, T>(a.dgate, r + soon, a.rows, a.width);
    prefetch_row<true, T>(a.dup, r + soon, a.rows, a.width);
    for (std::int64_t start = 0; start < a.width; start += piece) {
      const std::int64_t size = std::min(piece, a.width - start);
      const T* gate = row<T>(a.gate, r) + start;
      const T* up = row<T>(a.up, r) + start;
      const T* dy = row<T>(a.dy, r) + start;
      const GradientTarget<T> to_gate(a.dgate, r, start, a.accumulate_gate, spare_gate);
      const GradientTarget<T> to_up(a.dup, r, start, a.accumulate_up, spare_up);
      T* dgate = to_gate.data();
      T* dup = to_up.data();
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) {
        const T s = math::sigmoid(gate[i]);
        const T silu = gate[i] * s;
        dgate[i] = dy[i] * up[i] * (s + silu * (T(1) - s));
        dup[i] = dy[i] * silu;
      }
      to_gate.finish(size);
      to_up.finish(size);
    }
  }
}

}  // namespace

const Kernel<SwigluForward> swiglu_forward{"swiglu.forward", forward<float>, forward<double>};
const Kernel<SwigluBackward> swiglu_backward{"swiglu.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
