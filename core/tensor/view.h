#pragma once

#include <cstdint>

namespace phasor {

/// What a kernel sees of a tensor: the first element and the distance between rows, in elements. Plain data; the only
/// tensor type known to kernels. A null `data` is an absent optional operand.
struct View {
  void* data = nullptr;
  std::int64_t stride = 0;
};

/// constexpr, so that device code may call it.
template <class T>
constexpr T* row(const View& view, std::int64_t index) {
  return static_cast<T*>(view.data) + index * view.stride;
}

}  // namespace phasor
