#include <cmath>

#include "core/cuda/kernels.h"
#include "core/cuda/shares.h"
#include "core/ops/weight_norm/kernel.h"

namespace phasor::ops {

namespace {

constexpr double smallest = 1e-12;

template <class T>
__device__ bool is_small(T norm) {
  return norm < static_cast<T>(smallest);
}

/// The norm that is divided by.
template <class T>
__device__ T divisor(T norm) {
  return is_small(norm) ? static_cast<T>(smallest) : norm;
}

template <class T>
__global__ void rows_forward(WeightNormForward a) {
  const auto at = cuda::own_share(a.length, a.width);
  const T* w = row<T>(a.w, at.row);
  const T norm = std::sqrt(cuda::sum_of<T>(at, [&](std::int64_t i) { return w[i] * w[i]; }));
  if (at.there && threadIdx.x == 0) row<T>(a.norm, at.row)[0] = norm;
  const T factor = static_cast<const T*>(a.scale.data)[0] / divisor(norm);
  cuda::write_each(at, row<T>(a.y, at.row), false, [&](std::int64_t i) { return factor * w[i]; });
}

/// dots[r]: u . dy of the row, u its direction.
template <class T>
__global__ void rows_backward(WeightNormBackward a, T* dots) {
  const auto at = cuda::own_share(a.length, a.width);
  const T* w = row<T>(a.w, at.row);
  const T* dy = row<T>(a.dy, at.row);
  const T norm = row<T>(a.norm, at.row)[0], inverse = T(1) / divisor(norm);
  const T dot = cuda::sum_of<T>(at, [&](std::int64_t i) { return w[i] * dy[i]; }) * inverse;
  if (at.there && threadIdx.x == 0) dots[at.row] = dot;
  const T factor = static_cast<const T*>(a.scale.data)[0] * inverse;
  const T along = is_small(norm) ? T(0) : factor * dot * inverse;
  cuda::write_each(at, cuda::optional_row<T>(a.dw, at.row), a.accumulate,
                   [&](std::int64_t i) { return factor * dy[i] - along * w[i]; });
}

// Columns: block (columns, group). The sum over the column goes to the warp of the column, then by shared memory to the
// threads that stand at it.

template <class T>
struct Square {
  View w;
  __device__ T operator()(std::int64_t r, std::int64_t i) const {
    const T value = row<T>(w, r)[i];
    return value * value;
  }
};

template <class T>
struct Overlap {
  View w, dy;
  __device__ T operator()(std::int64_t r, std::int64_t i) const { return row<T>(w, r)[i] * row<T>(dy, r)[i]; }
};

template <class T>
__global__ void columns_forward(WeightNormForward a) {
  __shared__ T parts[cuda::row_block][cuda::column_block + 1], divisors[cuda::column_block];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * cuda::column_block, g = blockIdx.y;
  const std::int64_t begin = g * a.length, end = begin + a.length;
  const T norm = std::sqrt(cuda::column_sum(Square<T>{a.w}, begin, end, first, a.width, parts));
  if (threadIdx.x == 0) {
    divisors[threadIdx.y] = divisor(norm);
    if (first + threadIdx.y < a.width) row<T>(a.norm, g)[first + threadIdx.y] = norm;
  }
  __syncthreads();
  const std::int64_t i = first + threadIdx.x;
  if (i >= a.width) return;
  const T factor = static_cast<const T*>(a.scale.data)[g] / divisors[threadIdx.x];
  for (std::int64_t r = begin + threadIdx.y; r < end; r += cuda::row_block)
    row<T>(a.y, r)[i] = factor * row<T>(a.w, r)[i];
}

/// dots [groups, width]: u . dy of the column.
template <class T>
__global__ void columns_backward(WeightNormBackward a, T* dots) {
  __shared__ T parts[cuda::row_block][cuda::column_block + 1], overlaps[cuda::column_block];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * cuda::column_block, g = blockIdx.y;
  const std::int64_t begin = g * a.length, end = begin + a.length;
  const T overlap = cuda::column_sum(Overlap<T>{a.w, a.dy}, begin, end, first, a.width, parts);
  if (threadIdx.x == 0) overlaps[threadIdx.y] = overlap;
  __syncthreads();
  const std::int64_t i = first + threadIdx.x;
  if (i >= a.width) return;
  const T norm = row<T>(a.norm, g)[i], inverse = T(1) / divisor(norm), dot = overlaps[threadIdx.x] * inverse;
  if (threadIdx.y == 0) dots[g * a.width + i] = dot;
  if (a.dw.data == nullptr) return;
  const T factor = static_cast<const T*>(a.scale.data)[g] * inverse;
  const T along = is_small(norm) ? T(0) : factor * dot * inverse;
  for (std::int64_t r = begin + threadIdx.y; r < end; r += cuda::row_block) {
    const T value = factor * row<T>(a.dy, r)[i] - along * row<T>(a.w, r)[i];
    T& dw = row<T>(a.dw, r)[i];
    dw = a.accumulate ? dw + value : value;
  }
}

/// Block g: dscale[g] += the sum of its `count` dots.
template <class T>
__global__ void add_dots(const T* dots, std::int64_t count, T* dscale) {
  __shared__ T parts[cuda::warp_size];
  T sum(0);
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += dots[blockIdx.x * count + i];
  sum = cuda::block_sum(sum, parts);
  if (threadIdx.x == 0) dscale[blockIdx.x] += sum;
}

template <class T>
void start_add_dots(const cuda::Queue& queue, const WeightNormBackward& a, const T* dots, std::int64_t count) {
  if (a.dscale.data != nullptr)
    cuda::start(queue, dim3(static_cast<unsigned>(a.groups)), dim3(512), 0, add_dots<T>, dots, count,
                static_cast<T*>(a.dscale.data));
}

template <class T>
void forward_of_rows(const cuda::Queue& queue, const WeightNormForward& a) {
  cuda::start_vectors(queue, a.length, a.width, rows_forward<T>, a);
}

template <class T>
void backward_of_rows(const cuda::Queue& queue, const WeightNormBackward& a) {
  T* dots = cuda::scratch<T>(queue, a.length);
  cuda::start_vectors(queue, a.length, a.width, rows_backward<T>, a, dots);
  start_add_dots(queue, a, dots, a.length);
}

template <class Args>
dim3 column_blocks(const Args& a) {
  return {static_cast<unsigned>(cuda::divide_up(a.width, cuda::column_block)), static_cast<unsigned>(a.groups), 1};
}

template <class T>
void forward_of_columns(const cuda::Queue& queue, const WeightNormForward& a) {
  cuda::start(queue, column_blocks(a), dim3(cuda::column_block, cuda::row_block), 0, columns_forward<T>, a);
}

template <class T>
void backward_of_columns(const cuda::Queue& queue, const WeightNormBackward& a) {
  T* dots = cuda::scratch<T>(queue, a.groups * a.width);
  cuda::start(queue, column_blocks(a), dim3(cuda::column_block, cuda::row_block), 0, columns_backward<T>, a, dots);
  start_add_dots(queue, a, dots, a.width);
}

}  // namespace

void weight_norm_cuda(cuda::Kernels& kernels) {
  kernels.add(weight_norm_rows_forward, forward_of_rows<float>, forward_of_rows<double>);
  kernels.add(weight_norm_rows_backward, backward_of_rows<float>, backward_of_rows<double>);
  kernels.add(weight_norm_columns_forward, forward_of_columns<float>, forward_of_columns<double>);
  kernels.add(weight_norm_columns_backward, backward_of_columns<float>, backward_of_columns<double>);
}

}  // namespace phasor::ops
