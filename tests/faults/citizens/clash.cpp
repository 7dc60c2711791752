// Built twice, with different TEXT: the same global symbols with different bodies. Each library must use its own.
#include <string>
#include <vector>

#include "tests/faults/citizens/citizen.h"

std::string make_model() { return "model " TEXT; }

inline std::string inline_helper() { return "helper " TEXT; }

inline int next_number() {
  static int number = 0;
  return ++number;
}

namespace citizens {
std::vector<std::string> registry_of_my_own;
}

PHASOR_PLUGIN("clash", "1.0", [](phasor::Registry& registry) {
  citizens::registry_of_my_own.push_back(make_model() + ", " + inline_helper());
  registry.encoding<citizens::Quiet>(
      "clash_" TEXT, next_number(),
      std::to_string(citizens::registry_of_my_own.size()) + ": " + citizens::registry_of_my_own.back());
})
