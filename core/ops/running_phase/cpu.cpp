#include <algorithm>

#include "core/ops/running_phase/kernel.h"
#include "core/ops/vector_math.h"

namespace phasor::ops {

namespace {

/// The temperature of every channel, in double.
template <class T>
void spread_temperature(const RunningPhaseShape& s, const View& temperature, double* tau) {
  const T* from = static_cast<const T*>(temperature.data);
  for (std::int64_t h = 0; h < s.heads; ++h)
    for (std::int64_t i = 0; i < s.planes; ++i) tau[h * s.planes + i] = static_cast<double>(from[i]);
}

/// The state of one sequence (zeros when absent), one row of all heads.
void load_state(const RunningPhaseShape& s, const View& state, std::int64_t b, double* to) {
  for (std::int64_t h = 0; h < s.heads; ++h)
    for (std::int64_t i = 0; i < s.planes; ++i)
      to[h * s.planes + i] = state.data != nullptr ? row<double>(state, b * s.heads + h)[i] : 0.0;
}

void store_state(const RunningPhaseShape& s, const double* from, const View& state, std::int64_t b, bool accumulate) {
  for (std::int64_t h = 0; h < s.heads; ++h) {
    double* to = row<double>(state, b * s.heads + h);
    for (std::int64_t i = 0; i < s.planes; ++i) to[i] = from[h * s.planes + i] + (accumulate ? to[i] : 0.0);
  }
}

bool begins(const View& starts, std::int64_t b, std::int64_t t) {
  return starts.data != nullptr && row<std::int32_t>(starts, b)[t] == t;
}

template <class T>
void forward(const RunningPhaseForward& a) {
  const RunningPhaseShape& s = a.shape;
  const std::int64_t width = s.heads * s.planes;
  double* phi = row<double>(a.sums, 0);
  double* tau = row<double>(a.sums, 1);
  spread_temperature<T>(s, a.temperature, tau);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    load_state(s, a.state_in, b, phi);
    for (std::int64_t t = 0; t < s.time; ++t) {
      if (begins(a.starts, b, t)) std::fill_n(phi, width, 0.0);
      const T* f = row<T>(a.increments, b * s.time + t);
      T* angle = row<T>(a.angle, b * s.time + t);
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) {
        const double sum = phi[i] + static_cast<double>(f[i]);
        phi[i] = sum;
        angle[i] = static_cast<T>(math::reduce_angle(tau[i] * sum));
      }
    }
    if (a.state_out.data != nullptr) store_state(s, phi, a.state_out, b, false);
  }
}

/// df of one sequence, from the last step to the first; `carry` is left at the gradient of the incoming state.
template <class T>
void sum_backwards(const RunningPhaseBackward& a, std::int64_t b, const double* tau, double* carry) {
  const RunningPhaseShape& s = a.shape;
  const std::int64_t width = s.heads * s.planes;
  for (std::int64_t t = s.time - 1; t >= 0; --t) {
    if (a.dangle.data != nullptr) {
      const T* dangle = row<T>(a.dangle, b * s.time + t);
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) carry[i] += tau[i] * static_cast<double>(dangle[i]);
    }
    if (a.dincrements.data != nullptr) {
      T* df = row<T>(a.dincrements, b * s.time + t);
      if (a.accumulate_dincrements) {
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) df[i] += static_cast<T>(carry[i]);
      } else {
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) df[i] = static_cast<T>(carry[i]);
      }
    }
    if (begins(a.starts, b, t)) std::fill_n(carry, width, 0.0);
  }
}

/// total += Phi dangle over one sequence; Phi is summed again, the same way.
template <class T>
void add_temperature(const RunningPhaseBackward& a, std::int64_t b, double* phi, double* total) {
  const RunningPhaseShape& s = a.shape;
  load_state(s, a.state_in, b, phi);
  for (std::int64_t t = 0; t < s.time; ++t) {
    if (begins(a.starts, b, t)) std::fill_n(phi, s.heads * s.planes, 0.0);
    const T* f = row<T>(a.increments, b * s.time + t);
    const T* dangle = row<T>(a.dangle, b * s.time + t);
#pragma omp simd
    for (std::int64_t i = 0; i < s.heads * s.planes; ++i) {
      const double sum = phi[i] + static_cast<double>(f[i]);
      phi[i] = sum;
      total[i] += sum * static_cast<double>(dangle[i]);
    }
  }
}

template <class T>
void backward(const RunningPhaseBackward& a) {
  const RunningPhaseShape& s = a.shape;
  const bool want_temperature = a.dtemperature.data != nullptr && a.dangle.data != nullptr;
  double* carry = row<double>(a.sums, 0);
  double* tau = row<double>(a.sums, 1);
  double* total = row<double>(a.sums, 2);
  spread_temperature<T>(s, a.temperature, tau);
  for (std::int64_t i = 0; i < s.heads * s.planes; ++i) total[i] = 0.0;
  for (std::int64_t b = 0; b < s.batch; ++b) {
    load_state(s, a.dstate_out, b, carry);
    sum_backwards<T>(a, b, tau, carry);
    if (a.dstate_in.data != nullptr) store_state(s, carry, a.dstate_in, b, a.accumulate_dstate_in);
    if (want_temperature) add_temperature<T>(a, b, carry, total);
  }
  if (!want_temperature) return;
  T* dtau = static_cast<T*>(a.dtemperature.data);
  for (std::int64_t i = 0; i < s.planes; ++i) {
    double sum = 0.0;
    for (std::int64_t h = 0; h < s.heads; ++h) sum += total[h * s.planes + i];
    dtau[i] += static_cast<T>(sum);
  }
}

}  // namespace

const Kernel<RunningPhaseForward> running_phase_forward{"running_phase.forward", forward<float>, forward<double>};
const Kernel<RunningPhaseBackward> running_phase_backward{"running_phase.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
