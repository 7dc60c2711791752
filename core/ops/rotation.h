#pragma once

#include <cstdint>

#include "core/ops/simd.h"
#include "core/ops/vector_math.h"

// Rotation of the planes of one head, for the kernels that rotate queries and keys. The loops are short (the planes of
// a head): whole registers are taken from any address, and only what is left over goes one by one.

namespace phasor::rotation {

/// Sine and cosine of every angle of a row.
template <class T>
inline void turn(const T* angle, std::int64_t count, T* sin, T* cos) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const math::SinCos<T> at = math::sincos(angle[i]);
    sin[i] = at.sin;
    cos[i] = at.cos;
  }
}

/// Planes (i, i + R) of one head, R = planes: (a, b) -> (a cos - b sin, a sin + b cos).
template <class T>
inline void forward(const T* sin, const T* cos, std::int64_t planes, const T* from, T* to) {
  const T* b = from + planes;
  T* to_b = to + planes;
  std::int64_t i = 0;
  for (; i + simd::lanes<T> <= planes; i += simd::lanes<T>) {
    const auto s = simd::load(sin + i), c = simd::load(cos + i), x = simd::load(from + i), y = simd::load(b + i);
    simd::store(to + i, x * c - y * s);
    simd::store(to_b + i, x * s + y * c);
  }
  for (; i < planes; ++i) {
    const T x = from[i], y = b[i];
    to[i] = x * cos[i] - y * sin[i];
    to_b[i] = x * sin[i] + y * cos[i];
  }
}

/// The other way round: the gradient of `forward`.
template <bool accumulate, class T>
inline void backward(const T* sin, const T* cos, std::int64_t planes, const T* from, T* to) {
  const T* b = from + planes;
  T* to_b = to + planes;
  std::int64_t i = 0;
  for (; i + simd::lanes<T> <= planes; i += simd::lanes<T>) {
    const auto s = simd::load(sin + i), c = simd::load(cos + i), x = simd::load(from + i), y = simd::load(b + i);
    const auto back_x = x * c + y * s, back_y = y * c - x * s;
    simd::store(to + i, accumulate ? simd::load(to + i) + back_x : back_x);
    simd::store(to_b + i, accumulate ? simd::load(to_b + i) + back_y : back_y);
  }
  for (; i < planes; ++i) {
    const T x = from[i], y = b[i];
    const T back_x = x * cos[i] + y * sin[i], back_y = y * cos[i] - x * sin[i];
    to[i] = accumulate ? to[i] + back_x : back_x;
    to_b[i] = accumulate ? to_b[i] + back_y : back_y;
  }
}

/// dangle += db' a' - da' b'.
template <class T>
inline void add_slope(const T* rotated, const T* drotated, std::int64_t planes, T* dangle) {
  const T* b = rotated + planes;
  const T* db = drotated + planes;
  std::int64_t i = 0;
  for (; i + simd::lanes<T> <= planes; i += simd::lanes<T>) {
    const auto turned = simd::load(db + i) * simd::load(rotated + i) - simd::load(drotated + i) * simd::load(b + i);
    simd::store(dangle + i, simd::load(dangle + i) + turned);
  }
  for (; i < planes; ++i) dangle[i] += db[i] * rotated[i] - drotated[i] * b[i];
}

}  // namespace phasor::rotation
