#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

/// Repeats the last axis, as a whole: y[.., r n + i] = x[.., i], r = 0 .. times - 1;  dx[.., i] = sum_r dy[.., r n + i]
/// x [batch, time, heads, n]. Result [batch, time, heads, times n].
Tensor repeat(Tape& tape, const Tensor& x, std::int64_t times);

}  // namespace phasor::ops
