#include "tests/faults/citizens/citizen.h"

CITIZEN_MANIFEST(phasor::make_manifest("null", "1.0", nullptr))
