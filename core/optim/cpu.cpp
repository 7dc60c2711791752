#include <cmath>
#include <cstdint>

#include "core/base/rounding.h"
#include "core/optim/kernel.h"

namespace phasor {

namespace {

template <class T>
void sum_squares_cpu(const SumSquares& a) {
  const T* x = static_cast<const T*>(a.values.data);
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < a.count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  *a.sum += sum;
}

void clip_factor_cpu(const ClipFactor& a) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < a.count; ++i) sum += a.squares[i];
  const double norm = std::sqrt(sum), factor = a.limit > 0.0 ? a.limit / (norm + 1e-6) : 1.0;
  a.numbers->grad_norm = norm;
  a.numbers->clip = factor < 1.0 ? factor : 1.0;
}

template <class T>
void adamw_cpu(const AdamWUpdate& a) {
  T* p = static_cast<T*>(a.parameter.data) + a.begin;
  const T* g = static_cast<const T*>(a.gradient.data) + a.begin;
  T* m = static_cast<T*>(a.first.data) + a.begin;
  T* v = static_cast<T*>(a.second.data) + a.begin;
  const UpdateNumbers now = *a.numbers;
  const T clip = static_cast<T>(now.clip), keep = static_cast<T>(a.decays ? now.keep : 1.0);
  const T beta1 = static_cast<T>(a.beta1), beta2 = static_cast<T>(a.beta2);
  const T rest1 = static_cast<T>(1.0 - a.beta1), rest2 = static_cast<T>(1.0 - a.beta2);
  const T rate = static_cast<T>(now.rate), root = static_cast<T>(now.root), eps = static_cast<T>(a.eps);
#pragma omp simd
  for (std::int64_t i = 0; i < a.count; ++i) {
    const T gradient = clip * g[i];
    m[i] = beta1 * m[i] + rest1 * gradient;
    v[i] = beta2 * v[i] + rest2 * gradient * gradient;
    p[i] = keep * p[i] - rate * m[i] / (std::sqrt(v[i]) * root + eps);
  }
}

template <class T>
void sgd_cpu(const SgdUpdate& a) {
  T* p = static_cast<T*>(a.parameter.data) + a.begin;
  const T* g = static_cast<const T*>(a.gradient.data) + a.begin;
  const T clip = static_cast<T>(a.numbers->clip), decay = static_cast<T>(a.decay), momentum = static_cast<T>(a.momentum);
  const T lr = static_cast<T>(a.numbers->rate);
  if (a.moment.data == nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < a.count; ++i) p[i] -= lr * (clip * g[i] + decay * p[i]);
    return;
  }
  T* m = static_cast<T*>(a.moment.data) + a.begin;
  const T now = a.nesterov ? T(1) : T(0), then = a.nesterov ? momentum : T(1);
#pragma omp simd
  for (std::int64_t i = 0; i < a.count; ++i) {
    const T gradient = clip * g[i] + decay * p[i];
    m[i] = momentum * m[i] + gradient;
    p[i] -= lr * (now * gradient + then * m[i]);
  }
}

template <class T>
void round_bf16_cpu(const RoundBf16& a) {
  T* x = static_cast<T*>(a.values.data) + a.begin;
#pragma omp simd
  for (std::int64_t i = 0; i < a.count; ++i) x[i] = rounded<bf16_mantissa>(x[i]);
}

}  // namespace

const Kernel<RoundBf16> round_bf16{"round_bf16", round_bf16_cpu<float>, round_bf16_cpu<double>};
const Kernel<SgdUpdate> sgd_update{"sgd", sgd_cpu<float>, sgd_cpu<double>};
const Kernel<SumSquares> sum_squares{"sum_squares", sum_squares_cpu<float>, sum_squares_cpu<double>};
const Kernel<ClipFactor> clip_factor{"clip_factor", clip_factor_cpu, clip_factor_cpu};
const Kernel<AdamWUpdate> adamw_update{"adamw", adamw_cpu<float>, adamw_cpu<double>};

}  // namespace phasor
