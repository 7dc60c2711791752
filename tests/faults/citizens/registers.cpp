// Registers one encoding for every name in NAMES.
#include <initializer_list>

#include "tests/faults/citizens/citizen.h"

PHASOR_PLUGIN("registers", "1.0", [](phasor::Registry& registry) {
  for (const char* name : {NAMES}) registry.encoding<citizens::Quiet>(name, 1, "one of several");
})
