#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

/// Weights of fixed norm with a learned scale (Salimans and Kingma 2016; spec 3.3 step 2). Of every vector w of norm n,
/// with m = max(n, 1e-12) and u = w / m:
///     y = scale * u;  dscale = sum dy . u;  dw = (scale / m) (dy - u (u . dy)), without the last term where n < 1e-12

/// Vectors are the rows of w [O, I]; one scale [1] for all of them.
Tensor weight_norm_rows(Tape& tape, const Tensor& w, const Tensor& scale);

/// Vectors are the columns (h, r) of w [H, I, R], over I; one scale per head, [H].
Tensor weight_norm_columns(Tape& tape, const Tensor& w, const Tensor& scale);

}  // namespace phasor::ops
