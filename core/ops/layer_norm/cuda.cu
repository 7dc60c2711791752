#include <cmath>

#include "core/cuda/kernels.h"
#include "core/cuda/turns.h"
#include "core/ops/layer_norm/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
__global__ void forward_vectors(LayerNormForward a) {
  const auto at = cuda::own_share(a.rows * a.groups, a.width);
  const auto [r, g] = cuda::place_of(at.row, a.groups);
  const T* x = row<T>(a.x, r) + g * a.width;
  const T* weight = static_cast<const T*>(a.weight.data);
  const T* bias = static_cast<const T*>(a.bias.data);
  const T scale = T(1) / static_cast<T>(a.width);
  const T mean = cuda::sum_of<T>(at, [&](std::int64_t i) { return x[i]; }) * scale;
  // The deviations first, then their squares: a mean far above the spread costs no digits.
  const T square = cuda::sum_of<T>(at, [&](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); });
  const T inverse = T(1) / std::sqrt(square * scale + static_cast<T>(a.eps));
  if (at.there && threadIdx.x == 0) {
    row<T>(a.stats, r)[2 * g] = mean;
    row<T>(a.stats, r)[2 * g + 1] = inverse;
  }
  cuda::write_each(at, row<T>(a.y, r) + g * a.width, false, [&](std::int64_t i) {
    const T y = (x[i] - mean) * inverse * (weight != nullptr ? weight[i] : T(1));
    return bias != nullptr ? y + bias[i] : y;
  });
}

template <class T>
__global__ void backward_vectors(LayerNormBackward a) {
  const auto at = cuda::own_share(a.rows * a.groups, a.width);
  const auto [r, g] = cuda::place_of(at.row, a.groups);
  const T* x = row<T>(a.x, r) + g * a.width;
  const T* dy = row<T>(a.dy, r) + g * a.width;
  const T* weight = static_cast<const T*>(a.weight.data);
  const T mean = row<T>(a.stats, r)[2 * g], inverse = row<T>(a.stats, r)[2 * g + 1];
  const auto wd = [&](std::int64_t i) { return weight != nullptr ? weight[i] * dy[i] : dy[i]; };
  T sum(0), dot(0);
  for (std::int64_t i = at.first; i < at.end; i += at.step) {
    sum += wd(i);
    dot += (x[i] - mean) * wd(i);
  }
  const T scale = T(1) / static_cast<T>(a.width);
  const T shift = cuda::team_sum(sum) * scale, slope = cuda::team_sum(dot) * inverse * inverse * scale;
  cuda::write_each(at, row<T>(a.dx, r) + g * a.width, a.accumulate,
                   [&](std::int64_t i) { return inverse * (wd(i) - shift - (x[i] - mean) * slope); });
}

/// The same and the gradients of weight and bias, with each operand read once: vectors of up to widest_kept columns.
template <class T>
__global__ void backward_turns(LayerNormBackward a, T* weight_sums, T* bias_sums) {
  const T* weight = static_cast<const T*>(a.weight.data);
  const T scale = T(1) / static_cast<T>(a.width);
  cuda::Kept<T> of_weight = {}, of_bias = {}, w;
  for (unsigned k = 0; k < cuda::columns_kept; ++k)
    w[k] = weight != nullptr && cuda::own_column(k) < a.width ? weight[cuda::own_column(k)] : T(1);
  cuda::in_turns(a.rows * a.groups, [&](std::int64_t v, bool there) {
    const auto [r, g] = cuda::place_of(v, a.groups);
    const std::int64_t start = g * a.width;
    const T mean = row<T>(a.stats, r)[2 * g], inverse = row<T>(a.stats, r)[2 * g + 1];
    cuda::Kept<T> apart, dy;  // x - mean
    for (unsigned k = 0; k < cuda::columns_kept; ++k) {
      const std::int64_t at = start + cuda::own_column(k);
      const bool in = there && cuda::own_column(k) < a.width;
      apart[k] = in ? row<T>(a.x, r)[at] - mean : T(0);
      dy[k] = in ? row<T>(a.dy, r)[at] : T(0);
    }
    T sum(0), dot(0);
    for (unsigned k = 0; k < cuda::columns_kept; ++k) {
      of_weight[k] += dy[k] * apart[k] * inverse;
      of_bias[k] += dy[k];
      sum += w[k] * dy[k];
      dot += apart[k] * w[k] * dy[k];
    }
    const T shift = cuda::turn_sum(sum) * scale, slope = cuda::turn_sum(dot) * inverse * inverse * scale;
    if (!there || a.dx.data == nullptr) return;
    T* dx = row<T>(a.dx, r) + start;
    for (unsigned k = 0; k < cuda::columns_kept; ++k)
      if (const std::int64_t i = cuda::own_column(k); i < a.width) {
        const T value = inverse * (w[k] * dy[k] - shift - apart[k] * slope);
        dx[i] = a.accumulate ? dx[i] + value : value;
      }
  });
  cuda::put_kept(of_weight, weight_sums, a.width);
  cuda::put_kept(of_bias, bias_sums, a.width);
}

/// dy of element i of vector v, which is what the bias takes.
template <class T>
struct BiasTerm {
  LayerNormBackward a;
  __device__ T operator()(std::int64_t v, std::int64_t i) const {
    const auto [r, g] = cuda::place_of(v, a.groups);
    return row<T>(a.dy, r)[g * a.width + i];
  }
};

/// dy h of element i of vector v.
template <class T>
struct WeightTerm {
  LayerNormBackward a;
  __device__ T operator()(std::int64_t v, std::int64_t i) const {
    const auto [r, g] = cuda::place_of(v, a.groups);
    const T* stats = row<T>(a.stats, r) + 2 * g;
    return row<T>(a.dy, r)[g * a.width + i] * (row<T>(a.x, r)[g * a.width + i] - stats[0]) * stats[1];
  }
};

template <class T>
void forward(const cuda::Queue& queue, const LayerNormForward& a) {
  cuda::start_vectors(queue, a.rows * a.groups, a.width, forward_vectors<T>, a);
}

template <class T>
void backward(const cuda::Queue& queue, const LayerNormBackward& a) {
  const std::int64_t vectors = a.rows * a.groups;
  if ((a.dweight.data != nullptr || a.dbias.data != nullptr) && a.width <= cuda::widest_kept) {
    const std::int64_t size = cuda::blocks_in_turns(vectors, a.width) * a.width;
    T* sums = cuda::scratch<T>(queue, 2 * size);
    cuda::start_turns(queue, vectors, a.width, backward_turns<T>, a, sums, sums + size);
    if (a.dweight.data != nullptr)
      cuda::add_kept(queue, sums, static_cast<T*>(a.dweight.data), vectors, a.width);
    if (a.dbias.data != nullptr)
      cuda::add_kept(queue, sums + size, static_cast<T*>(a.dbias.data), vectors, a.width);
    return;
  }
  if (a.dx.data != nullptr) cuda::start_vectors(queue, vectors, a.width, backward_vectors<T>, a);
  if (a.dweight.data != nullptr)
    cuda::start_column_sums(queue, WeightTerm<T>{a}, static_cast<T*>(a.dweight.data), vectors, a.width);
  if (a.dbias.data != nullptr)
    cuda::start_column_sums(queue, BiasTerm<T>{a}, static_cast<T*>(a.dbias.data), vectors, a.width);
}

}  // namespace

void layer_norm_cuda(cuda::Kernels& kernels) {
  kernels.add(layer_norm_forward, forward<float>, forward<double>);
  kernels.add(layer_norm_backward, backward<float>, backward<double>);
}

}  // namespace phasor::ops
