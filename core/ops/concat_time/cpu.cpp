#include "core/ops/concat_time/kernel.h"

#include <algorithm>

namespace phasor::ops {

namespace {

template <class T>
void copy_rows(const CopyTime& a) {
  for (std::int64_t b = 0; b < a.batch; ++b)
    for (std::int64_t t = 0; t < a.count; ++t) {
      const T* from = row<T>(a.from, b * a.from_time + a.first_from + t);
      T* to = row<T>(a.to, b * a.to_time + a.first_to + t);
      if (a.accumulate) {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) to[i] += from[i];
      } else {
        std::copy_n(from, a.width, to);
      }
    }
}

template <class T>
void clear_rows(const ClearTime& a) {
  for (std::int64_t b = 0; b < a.batch; ++b)
    for (std::int64_t t = 0; t < a.count; ++t) std::fill_n(row<T>(a.to, b * a.time + a.first + t), a.width, T(0));
}

}  // namespace

const Kernel<CopyTime> copy_time{"concat_time.copy", copy_rows<float>, copy_rows<double>};
const Kernel<ClearTime> clear_time{"concat_time.clear", clear_rows<float>, clear_rows<double>};

}  // namespace phasor::ops
