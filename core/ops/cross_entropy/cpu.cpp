#include "core/ops/cross_entropy/kernel.h"
#include "core/ops/vector_math.h"

namespace phasor::ops {

namespace {

// NaN is never larger than anything, so it does not become the maximum; the loss becomes NaN through the sum.
template <class T>
T largest(const T* z, std::int64_t size) {
  constexpr std::int64_t lanes = 16;
  T part[lanes];
#pragma omp simd
  for (std::int64_t l = 0; l < lanes; ++l) part[l] = z[0];
  std::int64_t i = 0;
  for (; i + lanes <= size; i += lanes) {
#pragma omp simd
    for (std::int64_t l = 0; l < lanes; ++l) part[l] = z[i + l] > part[l] ? z[i + l] : part[l];
  }
  T top = part[0];
  for (std::int64_t l = 1; l < lanes; ++l) top = part[l] > top ? part[l] : top;
  for (; i < size; ++i) top = z[i] > top ? z[i] : top;
  return top;
}

template <class T>
bool first_largest(const T* z, std::int64_t target, T top) {
  if (!(z[target] == top)) return false;
  std::int32_t before = 0;
#pragma omp simd reduction(+ : before)
  for (std::int64_t i = 0; i < target; ++i) before += z[i] == top ? 1 : 0;
  return before == 0;
}

template <class T>
void forward(const CrossEntropyForward& a) {
  const auto* targets = static_cast<const std::int32_t*>(a.targets.data);
  T* loss = static_cast<T*>(a.loss.data);
  auto* correct = static_cast<std::int32_t*>(a.correct.data);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const std::int64_t target = targets[r];
    if (target < 0) {
      loss[r] = T(0);
      if (correct != nullptr) correct[r] = 0;
      continue;
    }
    const T* z = row<T>(a.logits, r);
    const T top = largest(z, a.vocabulary);
    T sum(0);
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < a.vocabulary; ++i) sum += math::exp_nonpositive(z[i] - top);
    loss[r] = math::log(sum) - (z[target] - top);
    if (a.kept.data != nullptr) {
      row<T>(a.kept, r)[0] = top;
      row<T>(a.kept, r)[1] = T(1) / sum;
    }
    if (correct != nullptr) correct[r] = first_largest(z, target, top) ? 1 : 0;
  }
}

template <class T>
void backward(const CrossEntropyBackward& a) {
  const auto* targets = static_cast<const std::int32_t*>(a.targets.data);
  const T* dloss = static_cast<const T*>(a.dloss.data);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const std::int64_t target = targets[r];
    T* dz = row<T>(a.dlogits, r);
    if (target < 0) {
      if (a.accumulate) continue;
#pragma omp simd
      for (std::int64_t i = 0; i < a.vocabulary; ++i) dz[i] = T(0);
      continue;
    }
    const T* z = row<T>(a.logits, r);
    const T top = row<T>(a.kept, r)[0];
    const T scale = row<T>(a.kept, r)[1] * dloss[r];
    if (a.accumulate) {
#pragma omp simd
      for (std::int64_t i = 0; i < a.vocabulary; ++i) dz[i] += math::exp_nonpositive(z[i] - top) * scale;
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < a.vocabulary; ++i) dz[i] = math::exp_nonpositive(z[i] - top) * scale;
    }
    dz[target] -= dloss[r];
  }
}

}  // namespace

const Kernel<CrossEntropyForward> cross_entropy_forward{"cross_entropy.forward", forward<float>, forward<double>};
const Kernel<CrossEntropyBackward> cross_entropy_backward{"cross_entropy.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
