#pragma once

#include <vector>

#include "core/ops/case.h"

namespace phasor::ops {

/// The cases of every room under core/ops (generated from the folder list by CMake).
std::vector<OpCase> all_cases();

}  // namespace phasor::ops
