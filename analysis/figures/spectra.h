#pragma once

#include <string>
#include <vector>

#include "analysis/figures/figures.h"
#include "results/spectra.h"

namespace phasor::analysis {

/// Of a trained model along one row, those that it has:
///   temperatures  sorted by size, of every layer and before training
///   phases        a few running angles of every layer and head against the position
///   gates         of every layer and head against the position: median over channels, and from their 10 % to their 90 % quantile
/// What a model does not have, or what is more than twelve panels, is named in the captions.
std::vector<Figure> spectra_figures(const results::Spectra& spectra);

/// What the figures draw, one number a line: layer, quantity, head, index (of the pair of channels; of a quantile in percent),
/// position, value; and the tokens of the row. All heads and layers, also those for which the figures have no panel.
std::string spectra_csv(const results::Spectra& spectra);

}  // namespace phasor::analysis
