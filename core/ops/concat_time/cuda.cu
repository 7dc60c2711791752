#include "core/cuda/kernels.h"
#include "core/cuda/shares.h"
#include "core/ops/concat_time/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
__global__ void copy_tokens(CopyTime a) {
  const auto at = cuda::own_share(a.batch * a.count, a.width);
  const auto [b, t] = cuda::place_of(at.row, a.count);
  const T* from = row<T>(a.from, b * a.from_time + a.first_from + t);
  T* to = row<T>(a.to, b * a.to_time + a.first_to + t);
  cuda::write_each(at, to, a.accumulate, [&](std::int64_t i) { return from[i]; });
}

template <class T>
__global__ void clear_tokens(ClearTime a) {
  const auto at = cuda::own_share(a.batch * a.count, a.width);
  const auto [b, t] = cuda::place_of(at.row, a.count);
  T* to = row<T>(a.to, b * a.time + a.first + t);
  for (std::int64_t i = at.first; i < at.end; i += at.step) to[i] = T(0);
}

template <class T>
void copy(const cuda::Queue& queue, const CopyTime& a) {
  cuda::start_rows(queue, a.batch * a.count, a.width, copy_tokens<T>, a);
}

template <class T>
void clear(const cuda::Queue& queue, const ClearTime& a) {
  cuda::start_rows(queue, a.batch * a.count, a.width, clear_tokens<T>, a);
}

}  // namespace

void concat_time_cuda(cuda::Kernels& kernels) {
  kernels.add(copy_time, copy<float>, copy<double>);
  kernels.add(clear_time, clear<float>, clear<double>);
}

}  // namespace phasor::ops
