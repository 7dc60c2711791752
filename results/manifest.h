#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/spec/json.h"

namespace phasor::results {

/// What a sweep expects, stored as `sweep.json` in its folder, so that a missing trial is always visible and a table
/// needs no plugin. Written by the runner, read by the analysis.
struct ManifestAxis {
  std::string name;                 // "variant"
  std::string role;                 // row, column, select, replicate, average
  std::string path;                 // "optimizer.lr" for axes of values; empty for axes of named points
  std::vector<std::string> labels;  // of the points, in the order of the file; for values their shortest text
  std::vector<Json> values;         // for axes of values; of drawn points with several paths an object each
  std::int64_t fresh = 0;           // of a replicate axis: so many of its last points are for confirmation
};

struct ManifestTrial {
  std::string id;               // of the trial; empty when excluded
  std::vector<std::int64_t> at;  // index of the point on each axis
  std::string excluded;         // the reason when an exclude rule or an ill-fitting pair removes the cell; else empty
  std::int64_t parameters = 0;
};

struct Manifest {
  std::string name, note;
  std::vector<ManifestAxis> axes;
  std::vector<ManifestTrial> trials;
  std::vector<std::string> varied;  // every path that any point changes
  Json table;                       // the resolved table section of the sweep file
  Json base;                        // the base experiment: what of it decides the bits, every default written out; null = not kept
  /// Trials of the confirmation that are not in `trials` yet: which ones they are is known when the selection is complete.
  std::int64_t awaiting = 0;
};

/// Whether a place is one of the confirmation, which reports what the selection chose.
bool is_fresh(const std::vector<ManifestAxis>& axes, const std::vector<std::int64_t>& at);

void write_manifest(const Manifest& manifest, const std::string& folder);
Manifest read_manifest(const std::string& folder);  // UserError when absent or not understood

}  // namespace phasor::results
