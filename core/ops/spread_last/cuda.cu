#include "core/cuda/kernels.h"
#include "core/cuda/shares.h"
#include "core/ops/spread_last/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
__global__ void forward_tokens(SpreadLastForward a) {
  const auto at = cuda::own_share(a.batch * a.time, a.dim);
  const auto [b, t] = cuda::place_of(at.row, a.time);
  const T* last = row<T>(a.x, (b + 1) * a.time - 1);
  const T* shift = row<T>(a.table, t);
  cuda::write_each(at, row<T>(a.y, at.row), false, [&](std::int64_t i) { return last[i] + shift[i]; });
}

template <class T>
struct TokenTerm {
  View dy;
  __device__ T operator()(std::int64_t r, std::int64_t i) const { return row<T>(dy, r)[i]; }
};

/// Block (row of the batch, columns).
template <class T>
__global__ void backward_columns(SpreadLastBackward a) {
  __shared__ T parts[cuda::row_block][cuda::column_block + 1];
  const std::int64_t b = blockIdx.x, first = static_cast<std::int64_t>(blockIdx.y) * cuda::column_block;
  const T total = cuda::column_sum(TokenTerm<T>{a.dy}, b * a.time, (b + 1) * a.time, first, a.dim, parts);
  const std::int64_t column = first + threadIdx.y;
  if (threadIdx.x == 0 && column < a.dim) row<T>(a.dx, (b + 1) * a.time - 1)[column] += total;
}

template <class T>
void forward(const cuda::Queue& queue, const SpreadLastForward& a) {
  cuda::start_rows(queue, a.batch * a.time, a.dim, forward_tokens<T>, a);
}

template <class T>
void backward(const cuda::Queue& queue, const SpreadLastBackward& a) {
  const auto columns = static_cast<unsigned>(cuda::divide_up(a.dim, cuda::column_block));
  cuda::start(queue, dim3(static_cast<unsigned>(a.batch), columns), dim3(cuda::column_block, cuda::row_block), 0,
              backward_columns<T>, a);
}

}  // namespace

void spread_last_cuda(cuda::Kernels& kernels) {
  kernels.add(spread_last_forward, forward<float>, forward<double>);
  kernels.add(spread_last_backward, backward<float>, backward<double>);
}

}  // namespace phasor::ops
