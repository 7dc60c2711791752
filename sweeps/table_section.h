#pragma once

#include <vector>

#include "core/spec/problems.h"
#include "sweeps/spec.h"

namespace phasor::sweeps {

/// Checks the table section, so that a mistake in it is known before hours of training and not after. Returns it with
/// its defaults written out; the analysis reads that.
Json read_table_section(Document& document, const std::vector<Axis>& axes);

/// Lengths that evaluation slices have in every cell of the sweep, and whether each cell has a single one; ends of ranges of
/// positions (Task::position_ends) that every cell has.
struct KnownSlices {
  std::vector<std::int64_t> valid, test, valid_positions, test_positions;
  bool single_valid = true, single_test = true;
};
/// Slices of the table section that no evaluation will have.
void check_slices(Document& document, const KnownSlices& known);

}  // namespace phasor::sweeps
