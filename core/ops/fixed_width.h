#pragma once

#include <cstdint>
#include <type_traits>

// Kernels over the vectors of a head: short loops, one after the other, a few thousand times per row.

namespace phasor::ops {

/// Calls body(width), with a constant for the usual widths of heads: a loop of constant length has no remainder and is laid
/// out flat.
template <class Body>
inline void with_fixed_width(std::int64_t width, Body body) {
  switch (width) {
    case 16:
      return body(std::integral_constant<std::int64_t, 16>());
    case 32:
      return body(std::integral_constant<std::int64_t, 32>());
    case 64:
      return body(std::integral_constant<std::int64_t, 64>());
    default:
      return body(width);
  }
}

}  // namespace phasor::ops
