#pragma once

#include <optional>

#include "core/graph/tape.h"

namespace phasor::ops {

// Functions of single elements. The result has the shape of the first operand; sig(x) = 1 / (1 + e^-x).

Tensor sigmoid(Tape& tape, const Tensor& x);       // y = sig(x);             dx = dy y (1 - y)
Tensor silu(Tape& tape, const Tensor& x);          // y = x sig(x);           dx = dy sig(x) (1 + x (1 - sig(x)))
Tensor exp(Tape& tape, const Tensor& x);           // y = e^x;                dx = dy y
Tensor abs(Tape& tape, const Tensor& x);           // y = |x|;                dx = dy sign(x), 0 at 0
Tensor softplus(Tape& tape, const Tensor& x);      // y = log(1 + e^x);       dx = dy sig(x)
Tensor relu(Tape& tape, const Tensor& x);          // y = max(x, 0);          dx = dy where x > 0, else 0
Tensor elu_plus_one(Tape& tape, const Tensor& x);  // y = x + 1 above 0, e^x below;  dx = dy min(y, 1)
Tensor log_sigmoid(Tape& tape, const Tensor& x);   // y = -log(1 + e^-x);     dx = dy sig(-x)
Tensor gelu(Tape& tape, const Tensor& x);          // y = x F(x), F(x) = (1 + erf(x / sqrt 2)) / 2;  dx = dy (F(x) + x F'(x))
Tensor scale(Tape& tape, const Tensor& x, double factor);  // y = factor x;   dx = factor dy

/// Log-decay of a gate: y = max(scale log_sigmoid(x), clamp_min), scale > 0;  dx = dy scale sig(-x), 0 where clamped.
Tensor log_gate(Tape& tape, const Tensor& x, double scale, std::optional<double> clamp_min);

/// y = a + b;  da = db = dy. Equal shapes; a and b may be the same value.
Tensor add(Tape& tape, const Tensor& a, const Tensor& b);

/// y = a (.) b;  da = dy (.) b, db = dy (.) a. Equal rows and widths, shape of a; a and b may be the same value.
Tensor mul(Tape& tape, const Tensor& a, const Tensor& b);

/// Adds one row to all rows: y[r, i] = x[r, i] + shift[i];  dx = dy;  dshift = sum over rows of dy.
/// x [rows.., width]; shift of `width` elements in any shape, e.g. [heads, planes] for x [batch, time, heads, planes].
Tensor add_row(Tape& tape, const Tensor& x, const Tensor& shift);

/// Gates groups of channels: y[.., h, i] = x[.., h, i] gate[.., h];
///     dx = dy gate;  dgate[.., h] = sum_i dy[.., h, i] x[.., h, i]
/// x [batch, time, heads, n]; gate [batch, time, heads], or [batch, time, heads * n] for one gate per element.
Tensor mul_groups(Tape& tape, const Tensor& x, const Tensor& gate);

}  // namespace phasor::ops
