#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/golden/units.h"

namespace phasor::golden {

/// One file in one precision: what a test runs.
struct Trial {
  std::string file;
  std::optional<Dtype> dtype;  // not set: a unit that the harness does not know
};
std::string name_of_trial(const Trial& trial);
void PrintTo(const Trial& trial, std::ostream* out);

/// Every file of the folder in double, and in single precision where kernels run.
std::vector<Trial> trials();

GoldenFile load(const std::string& name);

/// The folder is somebody's own selection, not the project's: there cases may be missing or unknown.
bool is_selection();

}  // namespace phasor::golden
