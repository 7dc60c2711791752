#include <algorithm>

#include "core/ops/embedding/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
void forward(const EmbeddingForward& a) {
  for (std::int64_t b = 0; b < a.batch; ++b) {
    const auto* ids = row<const std::int32_t>(a.ids, b);
    for (std::int64_t t = 0; t < a.time; ++t) {
      T* y = row<T>(a.y, b * a.time + t);
      if (ids[t] < 0) {
        std::fill_n(y, a.dim, T(0));
        continue;
      }
      const T* from = row<T>(a.weight, ids[t]);
#pragma omp simd
      for (std::int64_t i = 0; i < a.dim; ++i) y[i] = from[i];
    }
  }
}

template <class T>
void backward(const EmbeddingBackward& a) {
  for (std::int64_t b = 0; b < a.batch; ++b) {
    const auto* ids = row<const std::int32_t>(a.ids, b);
    for (std::int64_t t = 0; t < a.time; ++t) {
      if (ids[t] < 0 || ids[t] == a.padding) continue;
      const T* dy = row<T>(a.dy, b * a.time + t);
      T* to = row<T>(a.dweight, ids[t]);
#pragma omp simd
      for (std::int64_t i = 0; i < a.dim; ++i) to[i] += dy[i];
    }
  }
}

}  // namespace

const Kernel<EmbeddingForward> embedding_forward{"embedding.forward", forward<float>, forward<double>};
const Kernel<EmbeddingBackward> embedding_backward{"embedding.backward", backward<float>, backward<double>};

}  // namespace phasor::ops
