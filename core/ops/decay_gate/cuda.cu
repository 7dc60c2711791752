#include <cmath>

#include "core/cuda/kernels.h"
#include "core/cuda/math.h"
#include "core/cuda/shares.h"
#include "core/ops/decay_gate/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
__device__ T rate_of(const View& log_rate, std::int64_t group) {
  return std::exp(row<T>(log_rate, 0)[group]);
}

template <class T>
__global__ void forward_vectors(DecayGateForward a) {
  const auto at = cuda::own_share(a.rows * a.groups, a.width);
  const auto [r, g] = cuda::place_of(at.row, a.groups);
  const T rate = rate_of<T>(a.log_rate, g);
  const T* bias = row<T>(a.bias, 0) + g * a.width;
  const T* x = row<T>(a.x, r) + g * a.width;
  cuda::write_each(at, row<T>(a.y, r) + g * a.width, false,
                   [&](std::int64_t i) { return -rate * cuda::softplus(x[i] + bias[i]); });
}

/// The gradient of x, of which that of the bias is the sum over rows.
template <class T>
__device__ T slope(const DecayGateBackward& a, T rate, std::int64_t r, std::int64_t i) {
  return -rate * row<T>(a.dy, r)[i] * cuda::sigmoid(row<T>(a.x, r)[i] + row<T>(a.bias, 0)[i]);
}

template <class T>
__global__ void backward_vectors(DecayGateBackward a) {
  const auto at = cuda::own_share(a.rows * a.groups, a.width);
  const auto [r, g] = cuda::place_of(at.row, a.groups);
  const T rate = rate_of<T>(a.log_rate, g);
  const std::int64_t token = r, start = g * a.width;
  cuda::write_each(at, row<T>(a.dx, r) + start, a.accumulate,
                   [&](std::int64_t i) { return slope(a, rate, token, start + i); });
}

template <class T>
struct BiasTerm {
  DecayGateBackward a;
  __device__ T operator()(std::int64_t r, std::int64_t i) const {
    return slope(a, rate_of<T>(a.log_rate, cuda::place_of(i, a.width).row), r, i);
  }
};

template <class T>
struct RateTerm {
  DecayGateBackward a;
  __device__ T operator()(std::int64_t r, std::int64_t i) const { return row<T>(a.dy, r)[i] * row<T>(a.y, r)[i]; }
};

template <class T>
__global__ void clear_element(T* to, std::int64_t size) {
  const std::int64_t i = cuda::thread_index();
  if (i < size) to[i] = T(0);
}

/// Adds the sums of a group's channels.
template <class T>
__global__ void add_groups(const T* channels, T* to, std::int64_t groups, std::int64_t width) {
  const auto at = cuda::own_share(groups, width);
  const T* own = channels + at.row * width;
  const T sum = cuda::sum_of<T>(at, [&](std::int64_t i) { return own[i]; });
  if (at.there && threadIdx.x == 0) to[at.row] += sum;
}

template <class T>
void forward(const cuda::Queue& queue, const DecayGateForward& a) {
  cuda::start_rows(queue, a.rows * a.groups, a.width, forward_vectors<T>, a);
}

template <class T>
void backward(const cuda::Queue& queue, const DecayGateBackward& a) {
  const std::int64_t channels = a.groups * a.width;
  if (a.dx.data != nullptr) cuda::start_rows(queue, a.rows * a.groups, a.width, backward_vectors<T>, a);
  if (a.dbias.data != nullptr) cuda::start_column_sums(queue, BiasTerm<T>{a}, row<T>(a.dbias, 0), a.rows, channels);
  if (a.dlog_rate.data == nullptr) return;
  T* sums = cuda::scratch<T>(queue, channels);
  cuda::start_each(queue, channels, clear_element<T>, sums, channels);
  cuda::start_column_sums(queue, RateTerm<T>{a}, sums, a.rows, channels);
  cuda::start_vectors(queue, a.groups, a.width, add_groups<T>, sums, row<T>(a.dlog_rate, 0), a.groups, a.width);
}

}  // namespace

void decay_gate_cuda(cuda::Kernels& kernels) {
  kernels.add(decay_gate_forward, forward<float>, forward<double>);
  kernels.add(decay_gate_backward, backward<float>, backward<double>);
}

}  // namespace phasor::ops
