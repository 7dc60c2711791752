#include "tests/faults/citizens/citizen.h"

namespace citizens {
int missing_function(int);
}

PHASOR_PLUGIN("undefined_symbol", "1.0", [](phasor::Registry& registry) {
  registry.encoding<citizens::Quiet>("undefined", citizens::missing_function(1), "never seen");
})
