#pragma once

#include <cstdint>
#include <cstring>

// Registers as values, for kernels that keep a tile in them. Memory may be at any address.

namespace phasor::simd {

template <class T>
struct Lanes;
template <>
struct Lanes<float> {
  typedef float Vector __attribute__((vector_size(32)));
};
template <>
struct Lanes<double> {
  typedef double Vector __attribute__((vector_size(32)));
};
/// 32 bytes of numbers, the width of AVX2.
template <class T>
using Vector = typename Lanes<T>::Vector;
template <class T>
constexpr std::int64_t lanes = 32 / static_cast<std::int64_t>(sizeof(T));

template <class T>
inline Vector<T> load(const T* from) {
  Vector<T> x;
  std::memcpy(&x, from, sizeof(x));
  return x;
}

template <class T>
inline void store(T* to, Vector<T> x) {
  std::memcpy(to, &x, sizeof(x));
}

}  // namespace phasor::simd
