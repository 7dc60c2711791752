#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

/// Root-mean-square normalisation of the last axis, of size n (Zhang and Sennrich 2019):
///     r = (mean_i x_i^2 + eps)^(-1/2),  h = r x,  y = weight * h
///     dx = r (wd - h mean_i(h_i wd_i)), wd = weight * dy;  dweight = sum over rows of dy * h
/// x [rows.., n] or [batch, time, heads, n]; weight [n] shared by all rows and heads, or [heads * n] for one per head,
/// or empty for none. Result: shape of x.
Tensor rms_norm(Tape& tape, const Tensor& x, const Tensor& weight, double eps);

}  // namespace phasor::ops
