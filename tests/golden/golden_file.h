#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/spec/json.h"

namespace phasor::golden {

/// A tensor as a golden file holds it: always double, row-major.
struct Numbers {
  std::vector<std::int64_t> dims;
  std::vector<double> values;
};
using Group = std::map<std::string, Numbers>;

/// One test case: inputs, parameters, expected outputs and gradients of loss = sum of output * cotangent. README.md
/// says what the names mean.
struct GoldenFile {
  std::string name;  // "rms_norm__affine0"
  std::string unit;  // "rms_norm"
  Json options;
  Group inputs, params, outputs, cotangents, grads;
  std::set<std::string> indices;  // "inputs/ids": integers, which have no gradient
  /// How far the reference drifts when it is run in single precision, as a share of the largest value of a tensor.
  double single_outputs = 0.0, single_grads = 0.0;

  bool has_gradients() const { return !cotangents.empty(); }
};

/// Throws UserError naming the file when it is not one of ours.
GoldenFile read_golden(const std::string& path);

/// Folder of the files: the environment variable PHASOR_GOLDEN, otherwise the copy in the source tree.
std::string golden_folder();

/// Names of the files in a folder without ".h5", sorted.
std::vector<std::string> golden_names(const std::string& folder);

/// "rms_norm" of "rms_norm__affine0".
std::string unit_of(const std::string& name);

}  // namespace phasor::golden
