#pragma once

#include <cstdint>

#include "core/tensor/view.h"

namespace phasor::ops {

/// Where a loop writes `size` elements of a gradient: straight into the result, or into `spare` when they are to be added
/// to it (by finish) or are not wanted. One loop serves all three.
template <class T>
class GradientTarget {
 public:
  GradientTarget(const View& gradient, std::int64_t r, std::int64_t start, bool accumulate, T* spare)
      : spare_(spare), sum_(gradient.data != nullptr && accumulate ? row<T>(gradient, r) + start : nullptr),
        to_(gradient.data != nullptr && !accumulate ? row<T>(gradient, r) + start : spare) {}
  T* data() const { return to_; }
  void finish(std::int64_t size) const {
    if (sum_ == nullptr) return;
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) sum_[i] += spare_[i];
  }

 private:
  T* spare_;
  T* sum_;
  T* to_;
};

}  // namespace phasor::ops
