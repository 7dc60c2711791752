#include <cmath>

#include "core/cuda/kernels.h"
#include "core/cuda/math.h"
#include "core/cuda/shares.h"
#include "core/ops/gated_rms_norm/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
struct Activation {
  T value, slope;  // a(gate), a'(gate)
};

template <class T>
__device__ Activation<T> activate(T gate, bool silu) {
  const T s = cuda::sigmoid(gate);
  const T value = silu ? gate * s : s;
  return {value, (silu ? s : T(0)) + value * (T(1) - s)};
}

template <class T>
__global__ void forward_vectors(GatedRmsNormForward a) {
  const auto at = cuda::own_share(a.rows * a.groups, a.width);
  const auto [r, g] = cuda::place_of(at.row, a.groups);
  const T* x = row<T>(a.x, r) + g * a.width;
  const T* gate = row<T>(a.gate, r) + g * a.width;
  const T* weight = static_cast<const T*>(a.weight.data);
  const T square = cuda::sum_of<T>(at, [&](std::int64_t i) {
    const T z = a.norm_first ? x[i] : x[i] * activate(gate[i], a.silu).value;
    return z * z;
  });
  const T inverse = T(1) / std::sqrt(square / static_cast<T>(a.width) + static_cast<T>(a.eps));
  if (at.there && threadIdx.x == 0) row<T>(a.inverse, r)[g] = inverse;
  cuda::write_each(at, row<T>(a.y, r) + g * a.width, false, [&](std::int64_t i) {
    return x[i] * inverse * activate(gate[i], a.silu).value * (weight != nullptr ? weight[i] : T(1));
  });
}

template <class T>
__global__ void backward_vectors(GatedRmsNormBackward a) {
  const auto at = cuda::own_share(a.rows * a.groups, a.width);
  const auto [r, g] = cuda::place_of(at.row, a.groups);
  const std::int64_t start = g * a.width;
  const T* x = row<T>(a.x, r) + start;
  const T* gate = row<T>(a.gate, r) + start;
  const T* dy = row<T>(a.dy, r) + start;
  const T* weight = static_cast<const T*>(a.weight.data);
  const T inverse = row<T>(a.inverse, r)[g];
  const auto wd = [&](std::int64_t i) { return weight != nullptr ? weight[i] * dy[i] : dy[i]; };
  const T dot = cuda::sum_of<T>(at, [&](std::int64_t i) { return x[i] * activate(gate[i], a.silu).value * wd(i); });
  const T mean = dot * inverse * inverse / static_cast<T>(a.width);
  const cuda::PairTarget<T> to{a.dx.data != nullptr ? row<T>(a.dx, r) + start : nullptr, a.accumulate,
                               a.dgate.data != nullptr ? row<T>(a.dgate, r) + start : nullptr, a.accumulate_gate};
  const auto gradients = [&](std::int64_t i) {
    const auto [value, slope] = activate(gate[i], a.silu);
    if (a.norm_first) return to.sum(i, {inverse * (wd(i) * value - x[i] * mean), inverse * wd(i) * x[i] * slope});
    const T dz = inverse * (wd(i) - x[i] * value * mean);
    return to.sum(i, {dz * value, dz * x[i] * slope});
  };
  cuda::each(at, gradients, to);
}

/// dy h of element i of vector v.
template <class T>
struct WeightTerm {
  GatedRmsNormBackward a;
  __device__ T operator()(std::int64_t v, std::int64_t i) const {
    const auto [r, g] = cuda::place_of(v, a.groups);
    const std::int64_t at = g * a.width + i;
    return row<T>(a.dy, r)[at] * row<T>(a.x, r)[at] * activate(row<T>(a.gate, r)[at], a.silu).value *
           row<T>(a.inverse, r)[g];
  }
};

template <class T>
void forward(const cuda::Queue& queue, const GatedRmsNormForward& a) {
  cuda::start_vectors(queue, a.rows * a.groups, a.width, forward_vectors<T>, a);
}

template <class T>
void backward(const cuda::Queue& queue, const GatedRmsNormBackward& a) {
  const std::int64_t vectors = a.rows * a.groups;
  if (a.dx.data != nullptr || a.dgate.data != nullptr)
    cuda::start_vectors(queue, vectors, a.width, backward_vectors<T>, a);
  if (a.dweight.data != nullptr)
    cuda::start_column_sums(queue, WeightTerm<T>{a}, static_cast<T*>(a.dweight.data), vectors, a.width);
}

}  // namespace

void gated_rms_norm_cuda(cuda::Kernels& kernels) {
  kernels.add(gated_rms_norm_forward, forward<float>, forward<double>);
  kernels.add(gated_rms_norm_backward, backward<float>, backward<double>);
}

}  // namespace phasor::ops
