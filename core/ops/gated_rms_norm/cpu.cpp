#include <cmath>

#include "core/ops/gated_rms_norm/kernel.h"
#include "core/ops/vector_math.h"

namespace phasor::ops {

namespace {

template <class T>
void activate(const T* gate, T* value, std::int64_t width, bool silu) {
  if (silu) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) value[i] = math::silu(gate[i]);
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) value[i] = math::sigmoid(gate[i]);
  }
}

template <class T>
void activate(const T* gate, T* value, T* slope, std::int64_t width, bool silu) {
  if (silu) {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      const T s = math::sigmoid(gate[i]);
      value[i] = gate[i] * s;
      slope[i] = s + value[i] * (T(1) - s);
    }
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < width; ++i) {
      value[i] = math::sigmoid(gate[i]);
      slope[i] = value[i] * (T(1) - value[i]);
    }
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

// The output holds the activated gate until it is overwritten.
template <class T, bool norm_first, bool weighted>
void forward_as(const GatedRmsNormForward& a) {
  const T scale = T(1) / static_cast<T>(a.width);
  const T eps = static_cast<T>(a.eps);
  const T* weight = static_cast<const T*>(a.weight.data);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T* x = row<T>(a.x, r) + g * a.width;
      T* y = row<T>(a.y, r) + g * a.width;
      activate(row<T>(a.gate, r) + g * a.width, y, a.width, a.silu);
      T sum(0);
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = 0; i < a.width; ++i) {
        const T z = norm_first ? x[i] : x[i] * y[i];
        sum += z * z;
      }
      const T inverse = T(1) / std::sqrt(sum * scale + eps);
      row<T>(a.inverse, r)[g] = inverse;
#pragma omp simd
      for (std::int64_t i = 0; i < a.width; ++i) {
        const T h = x[i] * inverse * y[i];
        if constexpr (weighted)
          y[i] = h * weight[i];
        else
          y[i] = h;
      }
    }
  }
}

template <class T, bool norm_first, bool weighted>
void backward_as(const GatedRmsNormBackward& a) {
  const T scale = T(1) / static_cast<T>(a.width);
  const T* weight = static_cast<const T*>(a.weight.data);
  T* dweight = static_cast<T*>(a.dweight.data);
  T* value = row<T>(a.scratch, 0);  // a(gate), then the gradient of x
  T* slope = row<T>(a.scratch, 1);  // a'(gate), then the gradient of the gate
  for (std::int64_t r = 0; r < a.rows; ++r) {
    for (std::int64_t g = 0; g < a.groups; ++g) {
      const T* x = row<T>(a.x, r) + g * a.width;
      const T* dy = row<T>(a.dy, r) + g * a.width;
      const T inverse = row<T>(a.inverse, r)[g];
      activate(row<T>(a.gate, r) + g * a.width, value, slope, a.width, a.silu);
      if (dweight != nullptr) {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) dweight[i] += dy[i] * value[i] * x[i] * inverse;
      }
      if (a.dx.data == nullptr && a.dgate.data == nullptr) continue;
      T dot(0);
#pragma omp simd reduction(+ : dot)
      for (std::int64_t i = 0; i < a.width; ++i) {
        T wd = dy[i];
        if constexpr (weighted) wd *= weight[i];
        dot += x[i] * value[i] * wd;
      }
      const T mean = dot * inverse * inverse * scale;
#pragma omp simd
      for (std::int64_t i = 0; i < a.width; ++i) {
        T wd = dy[i];
        if constexpr (weighted) wd *= weight[i];
        if constexpr (norm_first) {
          value[i] = inverse * (wd * value[i] - x[i] * mean);
          slope[i] = inverse * wd * x[i] * slope[i];
        } else {
          const T dz = inverse * (wd - x[i] * value[i] * mean);
          value[i] = dz * value[i];
          slope[i] = dz * x[i] * slope[i];
        }
      }
      if (a.dx.data != nullptr) store(value, row<T>(a.dx, r) + g * a.width, a.width, a.accumulate);
      if (a.dgate.data != nullptr) store(slope, row<T>(a.dgate, r) + g * a.width, a.width, a.accumulate_gate);
    }
  }
}

template <class T>
void forward(const GatedRmsNormForward& a) {
  if (a.weight.data != nullptr)
    (a.norm_first ? forward_as<T, true, true> : forward_as<T, false, true>)(a);
  else
    (a.norm_first ? forward_as<T, true, false> : forward_as<T, false, false>)(a);
}

template <class T>
void backward(const GatedRmsNormBackward& a) {
  if (a.weight.data != nullptr)
    (a.norm_first ? backward_as<T, true, true> : backward_as<T, false, true>)(a);
  else
    (a.norm_first ? backward_as<T, true, false> : backward_as<T, false, false>)(a);
}

}  // namespace

const Kernel<GatedRmsNormForward> gated_rms_norm_forward{"gated_rms_norm.forward", forward<float>, forward<double>};
const Kernel<GatedRmsNormBackward> gated_rms_norm_backward{"gated_rms_norm.backward", backward<float>,
                                                           backward<double>};

}  // namespace phasor::ops
