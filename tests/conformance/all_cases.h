#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/ops/case.h"

namespace phasor::ops {

/// The cases of every room under core/ops (generated from the folder list by CMake).
std::vector<OpCase> all_cases();

/// The same by room.
std::vector<std::pair<std::string, std::vector<OpCase>>> cases_by_room();

}  // namespace phasor::ops
