#include "core/cuda/kernels.h"
#include "core/cuda/launch.h"
#include "core/cuda/total.h"
#include "core/graph/kernel.h"

namespace phasor {

namespace {

template <class T>
__global__ void copy_one(CopyRows a) {
  const auto [r, i] = cuda::place_of(cuda::thread_index(), a.width);
  if (r >= a.rows) return;
  const T from = row<T>(a.from, r)[i];
  T& to = row<T>(a.to, r)[i];
  to = a.accumulate ? to + from : from;
}

template <class T>
__global__ void add_one(AddRows a) {
  const auto [r, i] = cuda::place_of(cuda::thread_index(), a.width);
  if (r < a.rows) row<T>(a.out, r)[i] = row<T>(a.a, r)[i] + row<T>(a.b, r)[i];
}

template <class T>
__global__ void zero_one(ZeroRows a) {
  const auto [r, i] = cuda::place_of(cuda::thread_index(), a.width);
  if (r < a.rows) row<T>(a.to, r)[i] = T(0);
}

template <class T>
void copy(const cuda::Queue& queue, const CopyRows& a) {
  cuda::start_each(queue, a.rows * a.width, copy_one<T>, a);
}

template <class T>
void add(const cuda::Queue& queue, const AddRows& a) {
  cuda::start_each(queue, a.rows * a.width, add_one<T>, a);
}

template <class T>
void zero(const cuda::Queue& queue, const ZeroRows& a) {
  cuda::start_each(queue, a.rows * a.width, zero_one<T>, a);
}

template <class T>
struct Value {
  const T* values;
  __device__ double operator()(std::int64_t i) const { return static_cast<double>(values[i]); }
};

template <class T>
void total(const cuda::Queue& queue, const Total& a) {
  cuda::start_total(queue, Value<T>{static_cast<const T*>(a.values.data)}, a.count, a.sum);
}

}  // namespace

void graph_cuda(cuda::Kernels& kernels) {
  kernels.add(copy_rows, copy<float>, copy<double>);
  kernels.add(add_rows, add<float>, add<double>);
  kernels.add(zero_rows, zero<float>, zero<double>);
  kernels.add(total_values, total<float>, total<double>);
}

}  // namespace phasor
