#include "core/base/rounding.h"
#include "core/cuda/kernels.h"
#include "core/cuda/math.h"
#include "core/cuda/reduce.h"
#include "core/optim/kernel.h"

namespace phasor {

namespace {

template <class T>
T* part(const View& flat, std::int64_t begin) {
  return static_cast<T*>(flat.data) + begin;
}

// Sums of squares: every block adds up each `gridDim`-th group of `threads` elements, and one block what they found.
// The grid depends on the count alone, so the order of the sums does too.
constexpr unsigned threads = 256;
constexpr std::int64_t own = 16, most_blocks = 1024;  // elements of a thread, below most_blocks

template <class T>
__global__ void square_parts(const T* values, std::int64_t count, double* parts) {
  __shared__ double shared[cuda::warp_size];
  double sum = 0.0;
  for (std::int64_t i = cuda::thread_index(); i < count; i += static_cast<std::int64_t>(gridDim.x) * threads) {
    const auto value = static_cast<double>(values[i]);
    sum += value * value;
  }
  sum = cuda::block_sum(sum, shared);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void add_parts(const double* parts, std::int64_t count, double* to) {
  __shared__ double shared[cuda::warp_size];
  double sum = 0.0;
  for (std::int64_t i = threadIdx.x; i < count; i += threads) sum += parts[i];
  sum = cuda::block_sum(sum, shared);
  if (threadIdx.x == 0) *to += sum;
}

template <class T>
void sum_of_squares(const cuda::Queue& queue, const SumSquares& a) {
  const std::int64_t wanted = cuda::divide_up(a.count, threads * own);
  const std::int64_t blocks = wanted < most_blocks ? wanted : most_blocks;
  double* parts = cuda::scratch<double>(queue, most_blocks);
  if (blocks == 0) return;
  cuda::start(queue, dim3(static_cast<unsigned>(blocks)), dim3(threads), 0, square_parts<T>, part<const T>(a.values, 0),
              a.count, parts);
  cuda::start(queue, dim3(1), dim3(threads), 0, add_parts, parts, blocks, a.sum);
}

template <class T>
struct AdamW {
  T *p, *m, *v;
  const T* g;
  std::int64_t count;
  T clip, keep, beta1, beta2, rest1, rest2, rate, root, eps;
};

template <class T>
__global__ void adamw_one(AdamW<T> a) {
  const std::int64_t i = cuda::thread_index();
  if (i >= a.count) return;
  const T gradient = a.clip * a.g[i];
  const T m = a.beta1 * a.m[i] + a.rest1 * gradient;
  const T v = a.beta2 * a.v[i] + a.rest2 * gradient * gradient;
  a.m[i] = m;
  a.v[i] = v;
  a.p[i] = a.keep * a.p[i] - a.rate * m / (std::sqrt(v) * a.root + a.eps);
}

template <class T>
void adamw(const cuda::Queue& queue, const AdamWUpdate& a) {
  const AdamW<T> update{part<T>(a.parameter, a.begin),
                        part<T>(a.first, a.begin),
                        part<T>(a.second, a.begin),
                        part<const T>(a.gradient, a.begin),
                        a.count,
                        static_cast<T>(a.clip),
                        static_cast<T>(a.keep),
                        static_cast<T>(a.beta1),
                        static_cast<T>(a.beta2),
                        static_cast<T>(1.0 - a.beta1),
                        static_cast<T>(1.0 - a.beta2),
                        static_cast<T>(a.rate),
                        static_cast<T>(a.root),
                        static_cast<T>(a.eps)};
  cuda::start_each(queue, a.count, adamw_one<T>, update);
}

template <class T>
struct Sgd {
  T *p, *m;  // m is null without momentum
  const T* g;
  std::int64_t count;
  T clip, decay, momentum, lr, now, then;
};

template <class T>
__global__ void sgd_one(Sgd<T> a) {
  const std::int64_t i = cuda::thread_index();
  if (i >= a.count) return;
  const T p = a.p[i], gradient = a.clip * a.g[i] + a.decay * p;
  if (a.m == nullptr) {
    a.p[i] = p - a.lr * gradient;
    return;
  }
  const T m = a.momentum * a.m[i] + gradient;
  a.m[i] = m;
  a.p[i] = p - a.lr * (a.now * gradient + a.then * m);
}

template <class T>
void sgd(const cuda::Queue& queue, const SgdUpdate& a) {
  const Sgd<T> update{part<T>(a.parameter, a.begin),
                      a.moment.data != nullptr ? part<T>(a.moment, a.begin) : nullptr,
                      part<const T>(a.gradient, a.begin),
                      a.count,
                      static_cast<T>(a.clip),
                      static_cast<T>(a.decay),
                      static_cast<T>(a.momentum),
                      static_cast<T>(a.lr),
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
  kernels.add(adamw_update, adamw<float>, adamw<double>);
  kernels.add(sgd_update, sgd<float>, sgd<double>);
  kernels.add(round_bf16, round_values<float>, round_values<double>);
}

}  // namespace phasor
