#pragma once

#include <string>

#include "sweeps/reader.h"
#include "sweeps/spec.h"

namespace phasor::sweeps {

/// Fills an axis with points that are drawn:
///
///     "random": {"count": 16, "seed": 1, "draw": {"optimizer.lr": {"log_uniform": [1e-4, 1e-1]},
///                                                 "optimizer.weight_decay": {"uniform": [0, 0.1]},
///                                                 "model.dim": {"choice": [16, 32, 64]}}}
///
/// The value of a path in point k follows from (seed, path, k) alone, on every machine: a higher count adds points, another
/// path changes no value of this one. Numbers are rounded to four significant digits, so that a label is the whole value. A
/// point that came before is drawn again. With a single path the axis is one of values. Mistakes become problems.
void read_random(Reader& reader, const Json& json, Axis& axis);

}  // namespace phasor::sweeps
