#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/plugin/registry.h"
#include "core/spec/problems.h"
#include "experiments/spec.h"
#include "results/manifest.h"
#include "sweeps/spec.h"

namespace phasor::sweeps {

/// The product of the axes: every cell, and every trial once.
struct Expansion {
  results::Manifest manifest;           // one entry for each cell, excluded ones too
  std::vector<Trial> trials;            // each once, in the order of the cells
  std::vector<std::size_t> first_cell;  // of each trial, in manifest.trials
  std::int64_t excluded = 0;            // cells
  std::int64_t repeated = 0;            // cells that are the same trial as an earlier one
  std::vector<std::string> missing;     // what must be there before anything is trained (Task::missing), each once
};

/// A sweep file, understood.
struct Sweep {
  SweepSpec spec;
  Expansion expansion;
};

/// Reads a sweep file and its base (with `settings`, the `path=value` of --set, merged into the base), and makes every
/// trial. UserError with every mistake of both files, each with its place; pairs that do not fit are such mistakes
/// unless they are excluded. Starts nothing.
Sweep load_sweep(const std::string& file, const std::vector<std::string>& settings, const Registry& registry);

/// "Selective / S2 / lr 0.01 / seed 2"
std::string cell_name(const results::Manifest& manifest, const results::ManifestTrial& cell);

}  // namespace phasor::sweeps
