#pragma once

#include "core/graph/launch.h"

namespace phasor {

/// sum [1], f64, += all elements of a contiguous tensor, in double and in a fixed order.
void add_total(const Stream& stream, const Tensor& values, const Tensor& sum);

}  // namespace phasor
