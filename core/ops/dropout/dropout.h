#pragma once

#include <string_view>

#include "core/graph/tape.h"
#include "core/nn/state.h"

namespace phasor::ops {

/// Dropout (Srivastava et al. 2014): every element is zero with probability `rate`, else divided by 1 - rate:
///     y = keep x / (1 - rate);  dx = keep dy / (1 - rate)
/// x [batch, time, dim]. Whether an element stays is a function of (seed, step, row of the whole batch, time, channel,
/// site): nothing is kept for the backward pass, and it depends on no other row, thread or earlier call. `site` names the
/// place in the model, so that two places drop different elements. Steps below 2^40, rows of a batch below 2^24.
Tensor dropout(Tape& tape, const Tensor& x, double rate, const DropoutKey& key, std::string_view site);

}  // namespace phasor::ops
