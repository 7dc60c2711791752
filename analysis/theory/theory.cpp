#include "analysis/theory/theory.h"

#include <cmath>

namespace phasor::analysis::theory {

bool Check::holds() const { return std::fabs(found - expected) <= tolerance; }

std::vector<Check> all_checks() {
  std::vector<Check> all;
  for (const auto& part : {random_features(), rotations(), parity_clock(), leakage(), temperatures()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace phasor::analysis::theory
