#include "core/base/rounding.h"
#include "core/cuda/kernels.h"
#include "core/cuda/math.h"
#include "core/cuda/total.h"
#include "core/optim/kernel.h"

namespace phasor {

namespace {

template <class T>
T* part(const View& flat, std::int64_t begin) {
  return static_cast<T*>(flat.data) + begin;
}

template <class T>
struct Square {
  const T* values;
  __device__ double operator()(std::int64_t i) const {
    const auto value = static_cast<double>(values[i]);
    return value * value;
  }
};

template <class T>
void sum_of_squares(const cuda::Queue& queue, const SumSquares& a) {
  cuda::start_total(queue, Square<T>{part<const T>(a.values, 0)}, a.count, a.sum);
}

/// A device has few pieces (Optimizer::cut), so one thread is enough.
__global__ void find_clip_factor(ClipFactor a) {
  if (cuda::thread_index() > 0) return;
  double sum = 0.0;
  for (std::int64_t i = 0; i < a.count; ++i) sum += a.squares[i];
  const double norm = std::sqrt(sum), factor = a.limit > 0.0 ? a.limit / (norm + 1e-6) : 1.0;
  a.numbers->grad_norm = norm;
  a.numbers->clip = factor < 1.0 ? factor : 1.0;
}

void clip(const cuda::Queue& queue, const ClipFactor& a) { cuda::start_each(queue, 1, find_clip_factor, a); }

template <class T>
struct AdamW {
  T *p, *m, *v;
  const T* g;
  std::int64_t count;
  const UpdateNumbers* numbers;
  bool decays;
  T beta1, beta2, rest1, rest2, eps;
};

template <class T>
__global__ void adamw_one(AdamW<T> a) {
  const std::int64_t i = cuda::thread_index();
  if (i >= a.count) return;
  const UpdateNumbers now = *a.numbers;
  const T gradient = static_cast<T>(now.clip) * a.g[i];
  const T m = a.beta1 * a.m[i] + a.rest1 * gradient;
  const T v = a.beta2 * a.v[i] + a.rest2 * gradient * gradient;
  a.m[i] = m;
  a.v[i] = v;
  const T keep = static_cast<T>(a.decays ? now.keep : 1.0), rate = static_cast<T>(now.rate), root = static_cast<T>(now.root);
  a.p[i] = keep * a.p[i] - rate * m / (std::sqrt(v) * root + a.eps);
}

template <class T>
void adamw(const cuda::Queue& queue, const AdamWUpdate& a) {
  const AdamW<T> update{part<T>(a.parameter, a.begin),
                        part<T>(a.first, a.begin),
                        part<T>(a.second, a.begin),
                        part<const T>(a.gradient, a.begin),
                        a.count,
                        a.numbers,
                        a.decays,
                        static_cast<T>(a.beta1),
                        static_cast<T>(a.beta2),
                        static_cast<T>(1.0 - a.beta1),
                        static_cast<T>(1.0 - a.beta2),
                        static_cast<T>(a.eps)};
  cuda::start_each(queue, a.count, adamw_one<T>, update);
}

template <class T>
struct Sgd {
  T *p, *m;  // m is null without momentum
  const T* g;
  std::int64_t count;
  const UpdateNumbers* numbers;
  T decay, momentum, now, then;
};

template <class T>
__global__ void sgd_one(Sgd<T> a) {
  const std::int64_t i = cuda::thread_index();
  if (i >= a.count) return;
  const T clip = static_cast<T>(a.numbers->clip), lr = static_cast<T>(a.numbers->rate);
  const T p = a.p[i], gradient = clip * a.g[i] + a.decay * p;
  if (a.m == nullptr) {
    a.p[i] = p - lr * gradient;
    return;
  }
  const T m = a.momentum * a.m[i] + gradient;
  a.m[i] = m;
  a.p[i] = p - lr * (a.now * gradient + a.then * m);
}

template <class T>
void sgd(const cuda::Queue& queue, const SgdUpdate& a) {
  const Sgd<T> update{part<T>(a.parameter, a.begin),
                      a.moment.data != nullptr ? part<T>(a.moment, a.begin) : nullptr,
                      part<const T>(a.gradient, a.begin),
                      a.count,
                      a.numbers,
                      static_cast<T>(a.decay),
                      static_cast<T>(a.momentum),
                      a.nesterov ? T(1) : T(0),
                      a.nesterov ? static_cast<T>(a.momentum) : T(1)};
  cuda::start_each(queue, a.count, sgd_one<T>, update);
}

/// As core/optim/cpu.cpp has it, bit by bit.
template <class T>
__global__ void round_one(T* values, std::int64_t count) {
  const std::int64_t i = cuda::thread_index();
  if (i < count) values[i] = rounded<bf16_mantissa>(values[i]);
}

template <class T>
void round_values(const cuda::Queue& queue, const RoundBf16& a) {
  cuda::start_each(queue, a.count, round_one<T>, part<T>(a.values, a.begin), a.count);
}

}  // namespace

void optim_cuda(cuda::Kernels& kernels) {
  kernels.add(sum_squares, sum_of_squares<float>, sum_of_squares<double>);
  kernels.add(clip_factor, clip, clip);
  kernels.add(adamw_update, adamw<float>, adamw<double>);
  kernels.add(sgd_update, sgd<float>, sgd<double>);
  kernels.add(round_bf16, round_values<float>, round_values<double>);
}

}  // namespace phasor
