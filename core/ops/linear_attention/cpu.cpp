#include <algorithm>

#include "core/ops/linear_attention/kernel.h"

namespace phasor::ops {

namespace {

template <class T>
void spread(const SpreadForward& a) {
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t h = 0; h < a.heads; ++h) {
      T value = static_cast<T>(a.constant);
      if (a.from.data != nullptr) value = row<T>(a.from, r)[h];
      if (a.fixed.data != nullptr) value = static_cast<T>(row<double>(a.fixed, 0)[h]);
      std::fill_n(row<T>(a.y, r) + h * a.width, a.width, value);
    }
}

template <class T>
void pull_spread(const SpreadBackward& a) {
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t h = 0; h < a.heads; ++h) {
      const T* dy = row<T>(a.dy, r) + h * a.width;
      T sum(0);
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = 0; i < a.width; ++i) sum += dy[i];
      T& to = row<T>(a.dfrom, r)[h];
      to = a.accumulate ? to + sum : sum;
    }
}

template <class T>
void quotient(const QuotientForward& a) {
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t h = 0; h < a.heads; ++h) {
      const T inverse = T(1) / (row<T>(a.d, r)[h] + static_cast<T>(a.eps));
      const T* x = row<T>(a.x, r) + h * a.width;
      T* y = row<T>(a.y, r) + h * a.width;
#pragma omp simd
      for (std::int64_t i = 0; i < a.width; ++i) y[i] = x[i] * inverse;
    }
}

template <class T>
void pull_quotient(const QuotientBackward& a) {
  for (std::int64_t r = 0; r < a.rows; ++r)
    for (std::int64_t h = 0; h < a.heads; ++h) {
      const T inverse = T(1) / (row<T>(a.d, r)[h] + static_cast<T>(a.eps));
      const T* y = row<T>(a.y, r) + h * a.width;
      const T* dy = row<T>(a.dy, r) + h * a.width;
      T dot(0);
#pragma omp simd reduction(+ : dot)
      for (std::int64_t i = 0; i < a.width; ++i) dot += y[i] * dy[i];
      row<T>(a.dd, r)[h] = -dot * inverse;
      if (a.dx.data == nullptr) continue;
      T* dx = row<T>(a.dx, r) + h * a.width;
      if (a.accumulate) {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) dx[i] += dy[i] * inverse;
      } else {
#pragma omp simd
        for (std::int64_t i = 0; i < a.width; ++i) dx[i] = dy[i] * inverse;
      }
    }
}

}  // namespace

const Kernel<SpreadForward> spread_forward{"linear_attention.spread", spread<float>, spread<double>};
const Kernel<SpreadBackward> spread_backward{"linear_attention.spread_backward", pull_spread<float>,
                                             pull_spread<double>};
const Kernel<QuotientForward> quotient_forward{"linear_attention.quotient", quotient<float>, quotient<double>};
const Kernel<QuotientBackward> quotient_backward{"linear_attention.quotient_backward", pull_quotient<float>,
                                                 pull_quotient<double>};

}  // namespace phasor::ops
