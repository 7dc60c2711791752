#include <cmath>

#include "core/cuda/kernels.h"
#include "core/cuda/math.h"
#include "core/cuda/turns.h"
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

/// Of one element: dx and dgate, from weight times dy and the mean over the vector.
template <class T>
__device__ cuda::Pair<T> gradients(const GatedRmsNormBackward& a, T x, const Activation<T>& gate, T wd, T inverse,
                                   T mean) {
  if (a.norm_first) return {inverse * (wd * gate.value - x * mean), inverse * wd * x * gate.slope};
  const T dz = inverse * (wd - x * gate.value * mean);
  return {dz * gate.value, dz * x * gate.slope};
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
  const auto value = [&](std::int64_t i) {
    return to.sum(i, gradients(a, x[i], activate(gate[i], a.silu), wd(i), inverse, mean));
  };
  cuda::each(at, value, to);
}

/// The same and the gradient of the weight, with each operand read once: vectors of up to widest_kept columns.
template <class T>
__global__ void backward_turns(GatedRmsNormBackward a, T* sums) {
  const T* weight = static_cast<const T*>(a.weight.data);
  cuda::Kept<T> of_weight = {}, w;
  for (unsigned k = 0; k < cuda::columns_kept; ++k)
    w[k] = weight != nullptr && cuda::own_column(k) < a.width ? weight[cuda::own_column(k)] : T(1);
  cuda::in_turns(a.rows * a.groups, [&](std::int64_t v, bool there) {
    const auto [r, g] = cuda::place_of(v, a.groups);
    const std::int64_t start = g * a.width;
    const T inverse = row<T>(a.inverse, r)[g];
    cuda::Kept<T> x, dy, gate;
    for (unsigned k = 0; k < cuda::columns_kept; ++k) {
      const std::int64_t at = start + cuda::own_column(k);
      const bool in = there && cuda::own_column(k) < a.width;
      x[k] = in ? row<T>(a.x, r)[at] : T(0);
      dy[k] = in ? row<T>(a.dy, r)[at] : T(0);
      gate[k] = in ? row<T>(a.gate, r)[at] : T(0);
    }
    T dot(0);
    for (unsigned k = 0; k < cuda::columns_kept; ++k) {
      const T h = x[k] * activate(gate[k], a.silu).value;
      of_weight[k] += dy[k] * h * inverse;
      dot += h * w[k] * dy[k];
    }
    const T mean = cuda::turn_sum(dot) * inverse * inverse / static_cast<T>(a.width);
    const cuda::PairTarget<T> to{a.dx.data != nullptr ? row<T>(a.dx, r) + start : nullptr, a.accumulate,
                                 a.dgate.data != nullptr ? row<T>(a.dgate, r) + start : nullptr, a.accumulate_gate};
    for (unsigned k = 0; k < cuda::columns_kept; ++k)
      if (const std::int64_t i = cuda::own_column(k); there && i < a.width)
        to(i, to.sum(i, gradients(a, x[k], activate(gate[k], a.silu), w[k] * dy[k], inverse, mean)));
  });
  cuda::put_kept(of_weight, sums, a.width);
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
  if (a.dweight.data != nullptr && a.width <= cuda::widest_kept) {
    T* sums = cuda::scratch<T>(queue, cuda::blocks_in_turns(vectors, a.width) * a.width);
    cuda::start_turns(queue, vectors, a.width, backward_turns<T>, a, sums);
    cuda::add_kept(queue, sums, static_cast<T*>(a.dweight.data), vectors, a.width);
    return;
  }
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
