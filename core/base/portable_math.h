#pragma once

namespace phasor::portable {

// Elementary functions from additions, products and fused multiply-adds only. libm chooses among variants by processor
// and changes with its version; a random weight or an angle table must not change its bits with it. Every product that
// meets a sum is an explicit fma, so compilers have nothing left to contract. Errors are below 1e-15, relative for log
// and exp, absolute for sine and cosine.

/// Natural logarithm. 0 gives -infinity, a negative number NaN.
double log(double x);
/// Gives 0 below about -745 and infinity above about 709.8.
double exp(double x);

struct SinCos {
  double sin, cos;
};
/// Of an angle in radians, up to about 1e9 in size.
SinCos sincos(double radians);
/// Of an angle in full turns, sin(2 pi t): the reduction is exact for every t.
SinCos sincos_turns(double turns);

}  // namespace phasor::portable
