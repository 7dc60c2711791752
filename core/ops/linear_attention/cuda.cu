#include "core/cuda/kernels.h"
#include "core/cuda/reduce.h"
#include "core/ops/linear_attention/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
__global__ void spread_element(SpreadForward a) {
  const auto [r, i] = cuda::place_of(cuda::thread_index(), a.heads * a.width);
  if (r >= a.rows) return;
  const std::int64_t head = i / a.width;
  T value = static_cast<T>(a.constant);
  if (a.from.data != nullptr) value = row<T>(a.from, r)[head];
  if (a.fixed.data != nullptr) value = static_cast<T>(row<double>(a.fixed, 0)[head]);
  row<T>(a.y, r)[i] = value;
}

// A warp takes one head of one row.
constexpr unsigned warps = 4;

template <class Args>
__device__ cuda::Place own_head(const Args& a) {
  return cuda::place_of(static_cast<std::int64_t>(blockIdx.x) * warps + cuda::warp_index(), a.heads);
}

template <class T>
__global__ void sum_spread(SpreadBackward a) {
  const auto [r, h] = own_head(a);
  if (r >= a.rows) return;
  const T* dy = row<T>(a.dy, r) + h * a.width;
  T sum(0);
  for (std::int64_t i = cuda::lane_index(); i < a.width; i += cuda::warp_size) sum += dy[i];
  sum = cuda::warp_sum(sum);
  T& to = row<T>(a.dfrom, r)[h];
  if (cuda::lane_index() == 0) to = a.accumulate ? to + sum : sum;
}

template <class T>
__global__ void quotient_element(QuotientForward a) {
  const auto [r, i] = cuda::place_of(cuda::thread_index(), a.heads * a.width);
  if (r >= a.rows) return;
  const T inverse = T(1) / (row<T>(a.d, r)[i / a.width] + static_cast<T>(a.eps));
  row<T>(a.y, r)[i] = row<T>(a.x, r)[i] * inverse;
}

template <class T>
__global__ void quotient_back(QuotientBackward a) {
  const auto [r, h] = own_head(a);
  if (r >= a.rows) return;
  const T inverse = T(1) / (row<T>(a.d, r)[h] + static_cast<T>(a.eps));
  const T* y = row<T>(a.y, r) + h * a.width;
  const T* dy = row<T>(a.dy, r) + h * a.width;
  T* dx = a.dx.data != nullptr ? row<T>(a.dx, r) + h * a.width : nullptr;
  T dot(0);
  for (std::int64_t i = cuda::lane_index(); i < a.width; i += cuda::warp_size) {
    dot += y[i] * dy[i];
    if (dx != nullptr) dx[i] = a.accumulate ? dx[i] + dy[i] * inverse : dy[i] * inverse;
  }
  dot = cuda::warp_sum(dot);
  if (cuda::lane_index() == 0) row<T>(a.dd, r)[h] = -dot * inverse;
}

template <class Args>
void start_heads(const cuda::Queue& queue, const Args& a, void (*kernel)(Args)) {
  const auto blocks = static_cast<unsigned>(cuda::divide_up(a.rows * a.heads, warps));
  cuda::start(queue, dim3(blocks), dim3(warps * cuda::warp_size), 0, kernel, a);
}

template <class T>
void spread(const cuda::Queue& queue, const SpreadForward& a) {
  cuda::start_each(queue, a.rows * a.heads * a.width, spread_element<T>, a);
}
template <class T>
void pull_spread(const cuda::Queue& queue, const SpreadBackward& a) {
  start_heads(queue, a, sum_spread<T>);
}
template <class T>
void quotient(const cuda::Queue& queue, const QuotientForward& a) {
  cuda::start_each(queue, a.rows * a.heads * a.width, quotient_element<T>, a);
}
template <class T>
void pull_quotient(const cuda::Queue& queue, const QuotientBackward& a) {
  start_heads(queue, a, quotient_back<T>);
}

}  // namespace

void linear_attention_cuda(cuda::Kernels& kernels) {
  kernels.add(spread_forward, spread<float>, spread<double>);
  kernels.add(spread_backward, pull_spread<float>, pull_spread<double>);
  kernels.add(quotient_forward, quotient<float>, quotient<double>);
  kernels.add(quotient_backward, pull_quotient<float>, pull_quotient<double>);
}

}  // namespace phasor::ops
