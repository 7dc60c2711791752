#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

/// Two pieces of sequences one after the other: [batch, t1, ..] and [batch, t2, ..] -> [batch, t1 + t2, ..], of which
/// the first `skip` tokens are left out (a cache that forgets). `earlier` may be empty: no tokens. Every gradient goes
/// back to the piece it belongs to.
Tensor concat_time(Tape& tape, const Tensor& earlier, const Tensor& later, std::int64_t skip = 0);

}  // namespace phasor::ops
