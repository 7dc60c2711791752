#include "core/ops/decay_gate/kernel.h"
#include "core/ops/vector_math.h"

namespace phasor::ops {

namespace {

template <class T>
void forward(const DecayGateForward& a) {
  const T* bias = row<T>(a.bias, 0);
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T rate = math::exp(row<T>(a.log_rate, 0)[g]);
      const T* x = row<T>(a.x, r);
      T* y = row<T>(a.y, r);
#pragma omp simd
      for (std::int64_t i = g * a.width; i < (g + 1) * a.width; ++i) y[i] = -rate * math::softplus(x[i] + bias[i]);
    }
}

template <class T>
void backward(const DecayGateBackward& a) {
  const T* bias = row<T>(a.bias, 0);
  T* dx = row<T>(a.dx, 0);
  T* dbias = row<T>(a.dbias, 0);
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T rate = math::exp(row<T>(a.log_rate, 0)[g]);
      const T *x = row<T>(a.x, r), *y = row<T>(a.y, r), *dy = row<T>(a.dy, r);
      if (a.dx.data != nullptr) dx = row<T>(a.dx, r);
      T sum(0);
      for (std::int64_t i = g * a.width; i < (g + 1) * a.width; ++i) {
        const T slope = -rate * dy[i] * math::sigmoid(x[i] + bias[i]);
        sum += dy[i] * y[i];
        if (dx != nullptr) dx[i] = a.accumulate ? dx[i] + slope : slope;
        if (dbias != nullptr) dbias[i] += slope;
      }
      if (a.dlog_rate.data != nullptr) row<T>(a.dlog_rate, 0)[g] += sum;
    }
}

}  // namespace

const Kernel<DecayGateForward> decay_gate_forward{"decay_gate.forward", forward<float>, forward<double>};
const Kernel<DecayGateBackward> decay_gate_backward{"decay_gate.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
