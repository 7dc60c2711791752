#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

/// The gated middle of an MLP (Shazeer 2020), s = sig(gate):
///     y = silu(gate) (.) up = gate s (.) up
///     dgate = dy (.) up (.) s (1 + gate (1 - s));  dup = dy (.) gate s
/// gate, up [rows.., width], two different values, usually columns of one product (Tape::split). Result: shape of gate.
Tensor swiglu(Tape& tape, const Tensor& gate, const Tensor& up);

}  // namespace phasor::ops
