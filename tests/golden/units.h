#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/launch.h"
#include "tests/golden/compare.h"

namespace phasor::golden {

/// How our code computes the cases of one unit, on the device and in the precision of a stream: one or several Results (whole, cut in pieces, ...), each of which has
/// to agree with the file.
struct Unit {
  std::function<std::vector<Results>(const GoldenFile&, const Stream&)> run;
  bool kernels = true;  // of ours are used; schedules and sizes are plain double arithmetic
  /// Why a case of a known unit cannot run yet (a backbone that is not there), or nothing.
  std::function<std::optional<std::string>(const GoldenFile&)> missing = {};
};

using UnitTable = std::map<std::string, Unit>;
void add_ops(UnitTable& table);
void add_encodings(UnitTable& table);
void add_layers(UnitTable& table);
void add_models(UnitTable& table);
void add_optimisers(UnitTable& table);

/// Every unit we know.
const UnitTable& units();

}  // namespace phasor::golden
