#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

/// The first largest element of every row: logits [rows, classes] -> i32 [rows]. A constant: nothing is differentiated.
Tensor argmax(Tape& tape, const Tensor& logits);

}  // namespace phasor::ops
