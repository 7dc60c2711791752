#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/graph/tape.h"
#include "core/nn/state.h"

namespace phasor {

/// The cache of softmax attention: the earlier tokens that the state holds under `name`, then these [batch, time, ..].
/// What later tokens can see stays in the state: all, or with a window (in tokens, the query's own included) the last
/// window - 1. Without a state the piece is all there is.
Tensor with_earlier(Tape& tape, const Tensor& piece, std::string_view name, std::optional<std::int64_t> window,
                    State* state);

}  // namespace phasor
