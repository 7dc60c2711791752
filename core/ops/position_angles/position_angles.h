#pragma once

#include <cstdint>

#include "core/graph/tape.h"

namespace phasor::ops {

/// Angles of rotary embedding: [time, R] with angle_{t,i} = (offset + t) * frequency_i reduced to [-pi, pi]. The
/// product and the reduction are done in double, so that the last position is as good as the first in every precision.
/// frequencies [R] f64. The result is a constant: nothing is differentiated.
Tensor position_angles(Tape& tape, const Tensor& frequencies, std::int64_t offset, std::int64_t time);

}  // namespace phasor::ops
