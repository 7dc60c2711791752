#include <cmath>

#include "core/cuda/kernels.h"
#include "core/cuda/shares.h"
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
