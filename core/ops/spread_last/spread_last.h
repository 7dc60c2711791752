#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

/// The state of a row's last position at every position, with a row of a table each, so that positions can be told apart
/// (the decoder of an auto-encoder, tasks.md 2.7):
///     y[b, t] = x[b, time - 1] + table[t]
///     dx[b, time - 1] = sum of dy[b, t] over all t, in the order of t; 0 at the other positions
/// x [batch, time, dim] with at least one position. table [positions, dim], a constant of at least `time` rows.
/// Result [batch, time, dim].
Tensor spread_last(Tape& tape, const Tensor& x, const Tensor& table);

}  // namespace phasor::ops
