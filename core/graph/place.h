#pragma once

#include "core/tensor/tensor.h"

namespace phasor {

/// The place of a value on the tape without its memory: what a pullback keeps of a value whose elements it does not read. So
/// memory lives no longer than somebody reads it: a result goes back to the arena before the pass turns round.
inline Tensor place_of(const Tensor& value) {
  Tensor place = Tensor::borrow(nullptr, value.dtype(), value.shape());
  place.set_node(value.node());
  return place;
}

}  // namespace phasor
