#pragma once

#include <cstdint>

#include "core/graph/tape.h"

namespace phasor::ops {

/// Angles of rotary embedding: [time, R] with angle_{t,i} = (offset + t) * frequency_i reduced to [-pi, pi]. The
/// product and the reduction are done in double, so that the last position is as good as the first in every precision.
/// frequencies [R] f64. The result is a constant: nothing is differentiated.
/// With starts, i32 [batch, time] as in SequenceContext, every row has angles of its own, [batch, time, R], and `offset` is
/// the position of a document's first token: angle_{b,t,i} = (offset + t - starts_{b,t}) * frequency_i.
Tensor position_angles(Tape& tape, const Tensor& frequencies, std::int64_t offset, std::int64_t time,
                       const Tensor& starts = {});

}  // namespace phasor::ops
