// Throws half-way through registering.
#include <stdexcept>

#include "tests/faults/citizens/citizen.h"

namespace citizens {
struct OwnType {
  int code = 7;
};
}  // namespace citizens

PHASOR_PLUGIN("throws", "1.0", [](phasor::Registry& registry) {
  registry.encoding<citizens::Quiet>("half", 1, "registered before the exception");
  throw THROWN;
})
