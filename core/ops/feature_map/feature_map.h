#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

// What is special in the feature maps of linear attention (layers.md 5.1). x [batch, time, heads, K]; z = W x are its
// products with m random rows (shared_head_linear).

/// Positive random features (Choromanski et al. 2021), whose products estimate e^{x.y} without bias and are positive:
///     phi_j = e^{z_j - |x|^2 / 2} / sqrt(m);   dz = dphi (.) phi,  dx = -x sum_j(dphi_j phi_j)
/// z [batch, time, heads, m], x another value. No maximum is subtracted, since it would have to be one for all tokens:
/// the exponent is at most |w_j|^2 / 2 ~ K / 2.
Tensor positive_features(Tape& tape, const Tensor& z, const Tensor& x);

/// Random Fourier features (Rahimi and Recht 2007; Peng et al. 2021), whose products estimate e^{-|x - y|^2 / 2}:
///     phi = [sin z, cos z] / sqrt(m);   dz = (dsin (.) cos z - dcos (.) sin z) / sqrt(m)
/// z [batch, time, heads, m] -> [batch, time, heads, 2m].
Tensor fourier_features(Tape& tape, const Tensor& z);

/// Cosine weights (Qin et al. 2022): products of two such vectors carry the factor cos(pi (t - s) / (2 M)).
///     phi = [r cos a, r sin a],  r = max(x, 0),  a = pi p / (2 M);   dx = dcos cos a + dsin sin a where x > 0, else 0
/// x [batch, time, heads, K] -> [batch, time, heads, 2K]. p is the position of a token: offset + t, or t - starts[b, t]
/// in packed rows (i32 [batch, time] as in SequenceContext). p < M = max_length, or UserError.
Tensor cosine_features(Tape& tape, const Tensor& x, std::int64_t max_length, std::int64_t offset,
                       const Tensor& starts = {});

}  // namespace phasor::ops
