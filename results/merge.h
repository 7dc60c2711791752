#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "results/store.h"

namespace phasor::results {

/// What a merged file holds, and what it does not.
struct Merged {
  std::int64_t trials = 0;        // records of the sweep's cells, each once
  std::int64_t missing = 0;       // trials of the sweep without a whole record
  std::int64_t others = 0;        // records that belong to no cell: left out
  std::vector<Damaged> damaged;
};

/// Puts every record of a sweep's folder, and its manifest, into the one HDF5 file `out` (layout.md), replaced whole.
/// Equal records give equal bytes. UserError when the folder is not one of a sweep or `out` cannot be written.
Merged merge_folder(const std::string& folder, const std::string& out);

}  // namespace phasor::results
