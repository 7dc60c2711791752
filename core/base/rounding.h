#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace phasor {

constexpr int bf16_mantissa = 7, tf32_mantissa = 10;  // stored bits, without the leading one

/// The nearest number with so many stored bits of mantissa, ties to even; beyond the largest it is infinity, NaN stays
/// NaN.
template <int mantissa, class T>
constexpr T rounded(T x) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr int dropped = std::numeric_limits<T>::digits - 1 - mantissa;
  constexpr Bits below_half = (Bits(1) << (dropped - 1)) - 1, kept = ~((Bits(1) << dropped) - 1);
  const Bits bits = std::bit_cast<Bits>(x);
  const Bits near = (bits + below_half + ((bits >> dropped) & 1)) & kept;
  return x == x ? std::bit_cast<T>(near) : x;  // the carry would make an infinity of a NaN
}

}  // namespace phasor
