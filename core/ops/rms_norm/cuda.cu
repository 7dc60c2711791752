#include "core/cuda/kernels.h"
#include "core/cuda/math.h"
#include "core/cuda/turns.h"
#include "core/ops/rms_norm/kernel.h"

namespace phasor::ops {

namespace {

// A warp takes one vector.
constexpr unsigned warps = 4;

struct Vector {
  std::int64_t row, group;
  bool there;
};

template <class Args>
__device__ Vector own_vector(const Args& a) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * warps + cuda::warp_index();
  return {index / a.groups, index % a.groups, index < a.rows * a.groups};
}

template <class T, class Args>
__device__ const T* own_weight(const Args& a, std::int64_t group) {
  const T* weights = static_cast<const T*>(a.weight.data);
  return weights != nullptr ? weights + group * a.weight_step : nullptr;
}

template <class T>
__global__ void forward_vectors(RmsNormForward a) {
  const auto at = own_vector(a);
  if (!at.there) return;
  const T* x = row<T>(a.x, at.row) + at.group * a.width;
  T* y = row<T>(a.y, at.row) + at.group * a.width;
  const T* weight = own_weight<T>(a, at.group);
  T sum(0);
  for (std::int64_t i = cuda::lane_index(); i < a.width; i += cuda::warp_size) sum += x[i] * x[i];
  const T inverse = T(1) / std::sqrt(cuda::warp_sum(sum) / static_cast<T>(a.width) + static_cast<T>(a.eps));
  if (cuda::lane_index() == 0) row<T>(a.inverse, at.row)[at.group] = inverse;
  for (std::int64_t i = cuda::lane_index(); i < a.width; i += cuda::warp_size)
    y[i] = x[i] * inverse * (weight != nullptr ? weight[i] : T(1));
}

template <class T>
__global__ void backward_vectors(RmsNormBackward a) {
  const auto at = own_vector(a);
  if (!at.there) return;
  const T* x = row<T>(a.x, at.row) + at.group * a.width;
  const T* dy = row<T>(a.dy, at.row) + at.group * a.width;
  T* dx = row<T>(a.dx, at.row) + at.group * a.width;
  const T* weight = own_weight<T>(a, at.group);
  const T inverse = row<T>(a.inverse, at.row)[at.group];
  const auto wd = [&](std::int64_t i) { return weight != nullptr ? weight[i] * dy[i] : dy[i]; };
  T dot(0);
  for (std::int64_t i = cuda::lane_index(); i < a.width; i += cuda::warp_size) dot += x[i] * wd(i);
  const T mean = cuda::warp_sum(dot) * inverse * inverse / static_cast<T>(a.width);
  for (std::int64_t i = cuda::lane_index(); i < a.width; i += cuda::warp_size) {
    const T value = inverse * (wd(i) - x[i] * mean);
    dx[i] = a.accumulate ? dx[i] + value : value;
  }
}

/// The same and the gradient of a weight that all vectors share, with each operand read once: vectors of up to
/// widest_kept columns.
template <class T>
__global__ void backward_turns(RmsNormBackward a, T* sums) {
  const T* weight = static_cast<const T*>(a.weight.data);
  cuda::Kept<T> of_weight = {}, w;
  for (unsigned k = 0; k < cuda::columns_kept; ++k)
    w[k] = weight != nullptr && cuda::own_column(k) < a.width ? weight[cuda::own_column(k)] : T(1);
  cuda::in_turns(a.rows * a.groups, [&](std::int64_t v, bool there) {
    const auto [r, g] = cuda::place_of(v, a.groups);
    const std::int64_t start = g * a.width;
    const T inverse = row<T>(a.inverse, r)[g];
    cuda::Kept<T> x, dy;
    for (unsigned k = 0; k < cuda::columns_kept; ++k) {
      const std::int64_t at = start + cuda::own_column(k);
      const bool in = there && cuda::own_column(k) < a.width;
      x[k] = in ? row<T>(a.x, r)[at] : T(0);
      dy[k] = in ? row<T>(a.dy, r)[at] : T(0);
    }
    T dot(0);
    for (unsigned k = 0; k < cuda::columns_kept; ++k) {
      of_weight[k] += dy[k] * x[k] * inverse;
      dot += x[k] * w[k] * dy[k];
    }
    const T mean = cuda::turn_sum(dot) * inverse * inverse / static_cast<T>(a.width);
    if (!there || a.dx.data == nullptr) return;
    T* dx = row<T>(a.dx, r) + start;
    for (unsigned k = 0; k < cuda::columns_kept; ++k)
      if (const std::int64_t i = cuda::own_column(k); i < a.width) {
        const T value = inverse * (w[k] * dy[k] - x[k] * mean);
        dx[i] = a.accumulate ? dx[i] + value : value;
      }
  });
  cuda::put_kept(of_weight, sums, a.width);
}

/// dy h of one element: of row r, or of vector r when the vectors share the weight.
template <class T>
struct WeightTerm {
  RmsNormBackward a;
  __device__ T operator()(std::int64_t r, std::int64_t i) const {
    const bool shared = a.weight_step == 0;
    const std::int64_t at = shared ? r / a.groups : r, group = shared ? r % a.groups : i / a.width;
    const std::int64_t column = shared ? group * a.width + i : i;
    return row<T>(a.dy, at)[column] * row<T>(a.x, at)[column] * row<T>(a.inverse, at)[group];
  }
};

template <class T>
void forward(const cuda::Queue& queue, const RmsNormForward& a) {
  const auto blocks = static_cast<unsigned>(cuda::divide_up(a.rows * a.groups, warps));
  cuda::start(queue, dim3(blocks), dim3(warps * cuda::warp_size), 0, forward_vectors<T>, a);
}

template <class T>
void backward(const cuda::Queue& queue, const RmsNormBackward& a) {
  const std::int64_t vectors = a.rows * a.groups;
  if (a.dweight.data != nullptr && a.weight_step == 0 && a.width <= cuda::widest_kept) {
    T* sums = cuda::scratch<T>(queue, cuda::blocks_in_turns(vectors, a.width) * a.width);
    cuda::start_turns(queue, vectors, a.width, backward_turns<T>, a, sums);
    cuda::add_kept(queue, sums, static_cast<T*>(a.dweight.data), vectors, a.width);
    return;
  }
  const auto blocks = static_cast<unsigned>(cuda::divide_up(vectors, warps));
  if (a.dx.data != nullptr) cuda::start(queue, dim3(blocks), dim3(warps * cuda::warp_size), 0, backward_vectors<T>, a);
  if (a.dweight.data == nullptr) return;
  const bool shared = a.weight_step == 0;
  cuda::start_column_sums(queue, WeightTerm<T>{a}, static_cast<T*>(a.dweight.data), shared ? a.rows * a.groups : a.rows,
                          shared ? a.width : a.groups * a.width);
}

}  // namespace

void rms_norm_cuda(cuda::Kernels& kernels) {
  kernels.add(rms_norm_forward, forward<float>, forward<double>);
  kernels.add(rms_norm_backward, backward<float>, backward<double>);
}

}  // namespace phasor::ops
