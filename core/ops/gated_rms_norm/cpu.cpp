#include <cmath>

#include "core/ops/fixed_width.h"
#include "core/ops/gated_rms_norm/kernel.h"
#include "core/ops/gradient_target.h"
#include "core/ops/prefetch.h"
#include "core/ops/vector_math.h"

namespace phasor::ops {

namespace {

template <class T>
struct Activation {
  T value, slope;  // a(gate), a'(gate)
};

/// SiLU where `silu` is 1, sigmoid where it is 0: a number, so that the choice is neither a branch in the loop nor a
/// second copy of every kernel.
template <class T>
[[gnu::always_inline]] inline Activation<T> activate(T gate, T silu) {
  const T s = math::sigmoid(gate);
  const T value = s * math::choose(silu > T(0), gate, T(1));
  return {value, silu * s + value * (T(1) - s)};
}

constexpr std::int64_t soon = 4;  // rows from the one at work to the one asked for

// The output holds the activated gate until it is overwritten.
template <class T, bool norm_first, bool weighted, class Width>
void forward_as(const GatedRmsNormForward& a, Width width) {
  const T scale = T(1) / static_cast<T>(a.width);
  const T silu = a.silu ? T(1) : T(0);
  const T eps = static_cast<T>(a.eps);
  const T* weight = static_cast<const T*>(a.weight.data);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    prefetch_row<false, T>(a.x, r + soon, a.rows, a.groups * width);
    prefetch_row<false, T>(a.gate, r + soon, a.rows, a.groups * width);
    prefetch_row<true, T>(a.y, r + soon, a.rows, a.groups * width);
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T* x = row<T>(a.x, r) + g * width;
      const T* gate = row<T>(a.gate, r) + g * width;
      T* y = row<T>(a.y, r) + g * width;
      T sum(0);
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = 0; i < width; ++i) {
        y[i] = activate(gate[i], silu).value;
        const T z = norm_first ? x[i] : x[i] * y[i];
        sum += z * z;
      }
      const T inverse = T(1) / std::sqrt(sum * scale + eps);
      row<T>(a.inverse, r)[g] = inverse;
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) {
        const T h = x[i] * inverse * y[i];
        if constexpr (weighted)
          y[i] = h * weight[i];
        else
          y[i] = h;
      }
    }
  }
}

template <class T, bool norm_first, bool weighted, class Width>
void backward_as(const GatedRmsNormBackward& a, Width width) {
  const T scale = T(1) / static_cast<T>(a.width);
  const T silu = a.silu ? T(1) : T(0);
  const T* weight = static_cast<const T*>(a.weight.data);
  T* dweight = static_cast<T*>(a.dweight.data);
  T* value = row<T>(a.scratch, 0);  // a(gate), then the gradient of x if it is to be added
  T* slope = row<T>(a.scratch, 1);  // a'(gate), then the gradient of the gate
  for (std::int64_t r = 0; r < a.rows; ++r) {
    prefetch_row<false, T>(a.x, r + soon, a.rows, a.groups * width);
    prefetch_row<false, T>(a.gate, r + soon, a.rows, a.groups * width);
    prefetch_row<false, T>(a.dy, r + soon, a.rows, a.groups * width);
    prefetch_row<true, T>(a.dx, r + soon, a.rows, a.groups * width);
    prefetch_row<true, T>(a.dgate, r + soon, a.rows, a.groups * width);
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T* x = row<T>(a.x, r) + g * width;
      const T* gate = row<T>(a.gate, r) + g * width;
      const T* dy = row<T>(a.dy, r) + g * width;
      const T inverse = row<T>(a.inverse, r)[g];
      T dot(0);
#pragma omp simd reduction(+ : dot)
      for (std::int64_t i = 0; i < width; ++i) {
        const Activation<T> act = activate(gate[i], silu);
        value[i] = act.value;
        slope[i] = act.slope;
        T wd = dy[i];
        if constexpr (weighted) wd *= weight[i];
        dot += x[i] * act.value * wd;
      }
      if (dweight != nullptr) {
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) dweight[i] += dy[i] * value[i] * x[i] * inverse;
      }
      if (a.dx.data == nullptr && a.dgate.data == nullptr) continue;
      const T mean = dot * inverse * inverse * scale;
      const GradientTarget<T> to_x(a.dx, r, g * width, a.accumulate, value);
      const GradientTarget<T> to_gate(a.dgate, r, g * width, a.accumulate_gate, slope);
      T* dx = to_x.data();
      T* dgate = to_gate.data();
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i) {
        const T v = value[i], s = slope[i];
        T wd = dy[i];
        if constexpr (weighted) wd *= weight[i];
        if constexpr (norm_first) {
          dx[i] = inverse * (wd * v - x[i] * mean);
          dgate[i] = inverse * wd * x[i] * s;
        } else {
          const T dz = inverse * (wd - x[i] * v * mean);
          dx[i] = dz * v;
          dgate[i] = dz * x[i] * s;
        }
      }
      to_x.finish(width);
      to_gate.finish(width);
    }
  }
}

template <class T>
void forward(const GatedRmsNormForward& a) {
  with_fixed_width(a.width, [&](auto width) {
    if (a.weight.data != nullptr)
      a.norm_first ? forward_as<T, true, true>(a, width) : forward_as<T, false, true>(a, width);
    else
      a.norm_first ? forward_as<T, true, false>(a, width) : forward_as<T, false, false>(a, width);
  });
}

template <class T>
void backward(const GatedRmsNormBackward& a) {
  with_fixed_width(a.width, [&](auto width) {
    if (a.weight.data != nullptr)
      a.norm_first ? backward_as<T, true, true>(a, width) : backward_as<T, false, true>(a, width);
    else
      a.norm_first ? backward_as<T, true, false>(a, width) : backward_as<T, false, false>(a, width);
  });
}

}  // namespace

const Kernel<GatedRmsNormForward> gated_rms_norm_forward{"gated_rms_norm.forward", forward<float>, forward<double>};
const Kernel<GatedRmsNormBackward> gated_rms_norm_backward{"gated_rms_norm.backward", backward<float>,
                                                           backward<double>};

}  // namespace phasor::ops
