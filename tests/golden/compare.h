#pragma once

#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "tests/golden/golden_file.h"

namespace phasor::golden {

/// What our code made of the inputs of a file.
struct Results {
  std::string what;  // which way of computing it, when there are several: "row by row"; may be empty
  Group outputs;
  Group grads;                      // of every input with a gradient and of every parameter that we train
  std::vector<std::string> faults;  // mistakes found on the way
};

struct Tolerance {
  double outputs = 0.0, grads = 0.0;
};
/// 1e-9 in double. In single precision 20 times the drift of the reference itself, at least 1e-5.
Tolerance tolerance_of(const GoldenFile& file, Dtype dtype);

struct Verdict {
  std::vector<std::string> faults;  // one line each; none when all agrees
  double worst = 0.0;               // largest error / admissible error
};

/// Every tensor of the file against ours, by max|got - want| <= tol * max(max|want|, 1e-3 * largest of the group).
/// A tensor that only one side has is a fault: an output or gradient that we do not give, a parameter that we train and
/// the reference does not.
Verdict compare(const GoldenFile& file, const Results& results, const Tolerance& tolerance);

}  // namespace phasor::golden
