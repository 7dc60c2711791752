#include "core/cuda/kernels.h"
#include "core/cuda/math.h"
#include "core/cuda/reduce.h"
#include "core/ops/elementwise/kernel.h"

namespace phasor::ops {

namespace {

/// All threads take the same branch, and memory is what these kernels wait for.
template <class T>
__device__ T value(const UnaryForward& a, T x) {
  switch (a.op) {
    case Unary::sigmoid:
      return cuda::sigmoid(x);
    case Unary::silu:
      return cuda::silu(x);
    case Unary::exp:
      return std::exp(x);
    case Unary::abs:
      return std::abs(x);
    case Unary::softplus:
      return cuda::softplus(x);
    case Unary::relu:
      return x < T(0) ? T(0) : x;
    case Unary::elu_plus_one:
      return x > T(0) ? x + T(1) : std::exp(x);
    case Unary::log_sigmoid:
      return cuda::log_sigmoid(x);
    case Unary::log_gate: {
      const T y = static_cast<T>(a.factor) * cuda::log_sigmoid(x), low = static_cast<T>(a.low);
      return y < low ? low : y;
    }
    case Unary::scale:
      return static_cast<T>(a.factor) * x;
    case Unary::gelu:
      return x * cuda::normal_share(x);
  }
  return x;
}

/// dy / dx from what was kept (see UnaryBackward).
template <class T>
__device__ T slope(const UnaryBackward& a, T kept) {
  switch (a.op) {
    case Unary::sigmoid:
      return kept * (T(1) - kept);
    case Unary::silu:
      return cuda::silu_slope(kept);
    case Unary::exp:
      return kept;
    case Unary::abs:
      return kept > T(0) ? T(1) : (kept < T(0) ? T(-1) : T(0));
    case Unary::softplus:
      return cuda::sigmoid(kept);
    case Unary::relu:
      return kept > T(0) ? T(1) : T(0);
    case Unary::elu_plus_one:
      return kept < T(1) ? kept : T(1);
    case Unary::log_sigmoid:
      return cuda::sigmoid(-kept);
    case Unary::log_gate:
      return kept < static_cast<T>(a.low) ? T(0) : static_cast<T>(a.factor) * cuda::sigmoid(-kept);
    case Unary::scale:
      return static_cast<T>(a.factor);
    case Unary::gelu:
      return cuda::normal_share(kept) + kept * T(0.3989422804014327) * std::exp(T(-0.5) * kept * kept);
  }
  return kept;
}

template <class T>
__global__ void unary_element(UnaryForward a) {
  const auto [r, i] = cuda::place_of(cuda::thread_index(), a.width);
  if (r < a.rows) row<T>(a.y, r)[i] = value<T>(a, row<T>(a.x, r)[i]);
}

template <class T>
__global__ void unary_back_element(UnaryBackward a) {
  const auto [r, i] = cuda::place_of(cuda::thread_index(), a.width);
  if (r >= a.rows) return;
  const T gradient = row<T>(a.dy, r)[i] * slope<T>(a, row<T>(a.kept, r)[i]);
  T& dx = row<T>(a.dx, r)[i];
  dx = a.accumulate ? dx + gradient : gradient;
}

template <class T>
__global__ void product_element(Product p) {
  const auto [r, i] = cuda::place_of(cuda::thread_index(), p.width);
  if (r >= p.rows) return;
  const T product = row<T>(p.a, r)[i] * row<T>(p.b, r)[i];
  T& y = row<T>(p.y, r)[i];
  y = p.accumulate ? y + product : product;
}

template <class T>
__global__ void add_row_element(AddRowForward a) {
  const auto [r, i] = cuda::place_of(cuda::thread_index(), a.parts * a.width);
  if (r >= a.rows) return;
  const auto [part, column] = cuda::place_of(i, a.width);
  row<T>(a.y, r)[i] = row<T>(a.x, r)[i] + row<T>(a.shift, part)[column];
}

/// Of the columns that part `part` of the shift was added to.
template <class T>
struct ShiftTerm {
  AddRowBackward a;
  std::int64_t part;
  __device__ T operator()(std::int64_t r, std::int64_t i) const { return row<T>(a.dy, r)[part * a.width + i]; }
};

template <class T>
__global__ void mul_groups_element(MulGroupsForward a) {
  const auto [r, i] = cuda::place_of(cuda::thread_index(), a.groups * a.width);
  if (r < a.rows) row<T>(a.y, r)[i] = row<T>(a.x, r)[i] * row<T>(a.gate, r)[cuda::place_of(i, a.width).row];
}

// A warp takes one group of one row.
constexpr unsigned warps = 4;

template <class T>
__global__ void mul_groups_back(MulGroupsBackward a) {
  const auto [r, g] = cuda::place_of(static_cast<std::int64_t>(blockIdx.x) * warps + cuda::warp_index(), a.groups);
  if (r >= a.rows) return;
  const T* dy = row<T>(a.dy, r) + g * a.width;
  if (a.dgate.data != nullptr) {
    const T* x = row<T>(a.x, r) + g * a.width;
    T dot(0);
    for (std::int64_t i = cuda::lane_index(); i < a.width; i += cuda::warp_size) dot += dy[i] * x[i];
    dot = cuda::warp_sum(dot);
    T& dgate = row<T>(a.dgate, r)[g];
    if (cuda::lane_index() == 0) dgate = a.accumulate_gate ? dgate + dot : dot;
  }
  if (a.dx.data == nullptr) return;
  T* dx = row<T>(a.dx, r) + g * a.width;
  const T gate = row<T>(a.gate, r)[g];
  for (std::int64_t i = cuda::lane_index(); i < a.width; i += cuda::warp_size)
    dx[i] = a.accumulate ? dx[i] + dy[i] * gate : dy[i] * gate;
}

template <class T>
void unary(const cuda::Queue& queue, const UnaryForward& a) {
  cuda::start_each(queue, a.rows * a.width, unary_element<T>, a);
}

template <class T>
void unary_back(const cuda::Queue& queue, const UnaryBackward& a) {
  cuda::start_each(queue, a.rows * a.width, unary_back_element<T>, a);
}

template <class T>
void product(const cuda::Queue& queue, const Product& p) {
  cuda::start_each(queue, p.rows * p.width, product_element<T>, p);
}

template <class T>
void add_row(const cuda::Queue& queue, const AddRowForward& a) {
  cuda::start_each(queue, a.rows * a.parts * a.width, add_row_element<T>, a);
}

template <class T>
void add_row_back(const cuda::Queue& queue, const AddRowBackward& a) {
  for (std::int64_t part = 0; part < a.parts; ++part)
    cuda::start_column_sums(queue, ShiftTerm<T>{a, part}, row<T>(a.dshift, part), a.rows, a.width);
}

template <class T>
void mul_groups(const cuda::Queue& queue, const MulGroupsForward& a) {
  cuda::start_each(queue, a.rows * a.groups * a.width, mul_groups_element<T>, a);
}

template <class T>
void mul_groups_pull(const cuda::Queue& queue, const MulGroupsBackward& a) {
  const auto blocks = static_cast<unsigned>(cuda::divide_up(a.rows * a.groups, warps));
  cuda::start(queue, dim3(blocks), dim3(warps * cuda::warp_size), 0, mul_groups_back<T>, a);
}

}  // namespace

void elementwise_cuda(cuda::Kernels& kernels) {
  kernels.add(unary_forward, unary<float>, unary<double>);
  kernels.add(unary_backward, unary_back<float>, unary_back<double>);
  kernels.add(mul_forward, product<float>, product<double>);
  kernels.add(mul_backward, product<float>, product<double>);
  kernels.add(add_row_forward, add_row<float>, add_row<double>);
  kernels.add(add_row_backward, add_row_back<float>, add_row_back<double>);
  kernels.add(mul_groups_forward, mul_groups<float>, mul_groups<double>);
  kernels.add(mul_groups_backward, mul_groups_pull<float>, mul_groups_pull<double>);
}

}  // namespace phasor::ops
