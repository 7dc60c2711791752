#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

/// One row of a table per token:
///     y[b, t] = weight[ids[b, t]]
///     dweight[v] = sum of dy[b, t] over all b, t with ids[b, t] = v, in the order of the tokens; 0 for v = padding
/// ids i32 [batch, time], each in 0 .. vocabulary-1, or -1 for a row of zeros: the task promises it, builds with
/// assertions check it.
/// weight [vocabulary, dim]. `padding`: a row that is looked up as any other but does not learn; -1 for none.
/// Result [batch, time, dim].
Tensor embedding(Tape& tape, const Tensor& ids, const Tensor& weight, std::int64_t padding = -1);

}  // namespace phasor::ops
