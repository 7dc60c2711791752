#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

enum class GateKind { silu, sigmoid };
enum class GateOrder {
  norm_first,  // GLA, RetNet, DeltaNet, Gated DeltaNet, KDA
  gate_first   // Mamba-2
};

/// Gated output norm over the last axis, of size n, with a = silu or sig:
///     norm_first: h = r x,       y = weight * h * a(gate),  r = (mean_i x_i^2 + eps)^(-1/2)
///     gate_first: z = x a(gate), y = weight * r z,          r = (mean_i z_i^2 + eps)^(-1/2)
/// Gradients, with norm'(v, wd) = r (wd - v r^2 mean_i(v_i wd_i)):
///     norm_first: dx = norm'(x, weight dy a), dgate = weight dy h a', dweight = sum over vectors of dy a h
///     gate_first: dz = norm'(z, weight dy), dx = dz a, dgate = dz x a', dweight = sum over vectors of dy r z
/// x, gate [rows, n] or [batch, time, heads, n], two different values; of gate the axes of a row may be flat. weight
/// [n] shared by all rows and heads, or empty for none. Result: shape of x.
Tensor gated_rms_norm(Tape& tape, const Tensor& x, const Tensor& gate, const Tensor& weight, double eps, GateKind kind,
                      GateOrder order);

}  // namespace phasor::ops
