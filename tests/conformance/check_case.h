#pragma once

#include <string>
#include <vector>

#include "core/ops/case.h"

namespace phasor::ops {

/// Everything an op must hold, checked on one case; one line per broken promise, none when all hold.
std::vector<std::string> check_case(const OpCase& op);

}  // namespace phasor::ops
