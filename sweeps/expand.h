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

  /// With `confirm`: the trials on fresh seeds for every value of the select axes. Those of the values that the selection
  /// chooses are run.
  struct Fresh {
    results::ManifestTrial cell;
    Trial trial;
  };
  std::vector<Fresh> fresh;
  std::int64_t confirmed_cells = 0;  // something is chosen for each of these; fresh seeds for each: manifest.awaiting
};

/// Adds the fresh trials of the chosen places (a point on each axis, -1 on those of replicates) to the manifest and to the
/// trials. Nothing awaits the selection any more.
void confirm(Expansion& expansion, const std::vector<std::vector<std::int64_t>>& chosen);

/// What of a base experiment decides the bits of its trials: `given` is what its file says. Lanes and micro-batch that follow
/// from the shapes are left open.
Json base_identity(const ExperimentSpec& spec, const Json& given);

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
