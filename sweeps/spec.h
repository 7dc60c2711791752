#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/spec/problems.h"

namespace phasor::sweeps {

/// One value that a point gives to one path of the experiment.
struct Setting {
  std::string path;   // in the experiment: "model.encoding.gate.kind"
  Json value;         // a patch (see `merge`)
  std::string place;  // in the sweep file: "axes[0].points[3].set.model.encoding.gate.kind"
};

struct Point {
  std::string label;
  std::vector<Setting> settings;  // empty: the base as it is
  std::string place;              // "axes[0].points[3]" or "axes[2].values[1]"
  Json value;                     // of an axis of values; of drawn points with several paths an object, path to value
};

/// One dimension of the product. Its role says what the table does with it: row, column, select (chosen, such as the
/// learning rate), replicate (seeds), average.
struct Axis {
  std::string name, role, path;  // path: of an axis of values, and of draws for one path; else empty
  std::vector<Point> points;
  std::string place;      // "axes[0]"
  std::size_t fresh = 0;  // of a replicate axis: so many of the last points are those of `confirm`
  std::size_t visited() const { return points.size() - fresh; }  // by the selection
};

/// A rule that takes cells out of the product: all that match every condition.
struct Exclusion {
  std::vector<std::pair<std::size_t, std::size_t>> conditions;  // (axis, point)
  std::string reason;
};

/// What one trial may take; 0: no limit. No part of its identity.
struct Limits {
  std::int64_t seconds = 0, memory_mb = 0;
};

/// A sweep file, as far as it could be read.
struct SweepSpec {
  std::string name, note;
  std::string base;  // file of the experiment, relative to the sweep file
  std::vector<Axis> axes;
  std::vector<Exclusion> exclude;
  Limits limits;
  Json table;  // the table section with its defaults written out
};

/// Reads `document`; every mistake becomes a problem of it. What experiments accept is not checked here: `expand` does.
SweepSpec read_sweep_spec(Document& document);

}  // namespace phasor::sweeps
