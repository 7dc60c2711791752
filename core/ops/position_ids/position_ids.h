#pragma once

#include <cstdint>

#include "core/graph/tape.h"

namespace phasor::ops {

/// Positions as row numbers of a table: i32 [batch, time] with t + offset, or, in packed rows, t - starts[b, t] (see
/// SequenceContext::starts, i32 [batch, time]). A constant: nothing is differentiated.
Tensor position_ids(Tape& tape, std::int64_t batch, std::int64_t time, std::int64_t offset, const Tensor& starts = {});

}  // namespace phasor::ops
