// Built with the standard library's other string. Nothing of it needs the core, so it links; it must not be loaded.
#include <cstdlib>

#include "tests/faults/citizens/citizen.h"

namespace {
[[maybe_unused]] const bool initialised = (std::abort(), true);
}

PHASOR_PLUGIN("other_abi", "1.0", citizens::register_nothing)
