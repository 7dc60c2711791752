#include "core/cuda/kernels.h"
#include "core/cuda/math.h"
#include "core/cuda/shares.h"
#include "core/ops/position_angles/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
__global__ void forward_tokens(PositionAngles a) {
  const auto at = cuda::own_share(a.rows * a.time, a.planes);
  const auto [b, t] = cuda::place_of(at.row, a.time);
  const auto* starts = cuda::optional_row<const std::int32_t>(a.starts, b);
  const auto* frequency = static_cast<const double*>(a.frequencies.data);
  const auto position = static_cast<double>(a.offset + t - (starts != nullptr ? starts[t] : 0));
  cuda::write_each(at, row<T>(a.angle, at.row), false,
                   [&](std::int64_t i) { return static_cast<T>(cuda::reduce_angle(position * frequency[i])); });
}

template <class T>
void forward(const cuda::Queue& queue, const PositionAngles& a) {
  cuda::start_rows(queue, a.rows * a.time, a.planes, forward_tokens<T>, a);
}

}  // namespace

void position_angles_cuda(cuda::Kernels& kernels) {
  kernels.add(position_angles_forward, forward<float>, forward<double>);
}

}  // namespace phasor::ops
