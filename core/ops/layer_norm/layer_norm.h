#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

/// Layer normalisation of the last axis, of size n (Ba et al. 2016; layers.md 1):
///     m = mean_i x_i,  r = (mean_i (x_i - m)^2 + eps)^(-1/2),  h = r (x - m),  y = weight * h + bias
///     dx = r (wd - mean_i wd_i - h mean_i(h_i wd_i)), wd = weight * dy;  dweight = sum over rows of dy * h;  dbias = sum of dy
/// x [rows.., n] or [batch, time, heads, n]; weight and bias [n] shared by all rows, or empty for none. Result: shape of x.
Tensor layer_norm(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);

}  // namespace phasor::ops
