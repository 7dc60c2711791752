#pragma once

#include <vector>

#include "analysis/figures/figures.h"

namespace phasor::analysis {

/// How temperatures are distributed (the paper's figure 2), and what windows leak (its figure 3), from analysis/theory.
std::vector<Figure> theory_figures();

}  // namespace phasor::analysis
