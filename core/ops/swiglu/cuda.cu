#include "core/cuda/kernels.h"
#include "core/cuda/math.h"
#include "core/cuda/shares.h"
#include "core/ops/swiglu/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
__global__ void forward_rows(SwigluForward a) {
  const auto at = cuda::own_share(a.rows, a.width);
  const T* gate = row<T>(a.gate, at.row);
  const T* up = row<T>(a.up, at.row);
  cuda::write_each(at, row<T>(a.y, at.row), false, [&](std::int64_t i) { return cuda::silu(gate[i]) * up[i]; });
}

// Both gradients share one sigmoid.
template <class T>
__global__ void backward_rows(SwigluBackward a) {
  const auto at = cuda::own_share(a.rows, a.width);
  const T* gate = row<T>(a.gate, at.row);
  const T* up = row<T>(a.up, at.row);
  const T* dy = row<T>(a.dy, at.row);
  const cuda::PairTarget<T> to{cuda::optional_row<T>(a.dgate, at.row), a.accumulate_gate,
                               cuda::optional_row<T>(a.dup, at.row), a.accumulate_up};
  const auto gradients = [&](std::int64_t i) {
    const T g = gate[i], d = dy[i], s = cuda::sigmoid(g), silu = g * s;
    return to.sum(i, {d * up[i] * (s + silu * (T(1) - s)), d * silu});
  };
  cuda::each(at, gradients, to);
}

template <class T>
void forward(const cuda::Queue& queue, const SwigluForward& a) {
  cuda::start_rows(queue, a.rows, a.width, forward_rows<T>, a);
}

template <class T>
void backward(const cuda::Queue& queue, const SwigluBackward& a) {
  cuda::start_rows(queue, a.rows, a.width, backward_rows<T>, a);
}

}  // namespace

void swiglu_cuda(cuda::Kernels& kernels) {
  kernels.add(swiglu_forward, forward<float>, forward<double>);
  kernels.add(swiglu_backward, backward<float>, backward<double>);
}

}  // namespace phasor::ops
