#pragma once

#include "core/graph/tape.h"

namespace phasor::ops {

/// Which components of a head make plane i of R: (i, i + R) or (2i, 2i + 1).
enum class PairLayout : std::uint8_t { half_split, interleaved };

struct Rotated {
  Tensor q, k;
};

/// Rotates the planes of q and k, both the same way, counter-clockwise:
///     (a, b) -> (a', b') = (a cos - b sin, a sin + b cos)
///     da = da' cos + db' sin,  db = -da' sin + db' cos;  dangle = sum over q and k of db' a' - da' b'
/// q [batch, time, Hq, K], k [batch, time, Hk, K]. angle is [batch, time, H, R] with H = Hq = Hk, or, as a constant that
/// the heads share, [batch, time, R] or [time, R]. 2R <= K: the first 2R components rotate, the others pass through. Angles
/// need not be reduced, but in f32 an angle of 1e6 has an error of its own. q and k may be one value.
Rotated rotate_pairs(Tape& tape, const Tensor& q, const Tensor& k, const Tensor& angle, PairLayout layout);

}  // namespace phasor::ops
