#include <cmath>

#include "core/ops/case.h"
#include "core/ops/layer_norm/layer_norm.h"

namespace phasor::ops {

namespace {

Array plain(const Array& x, const Array* weight, const Array* bias, double eps) {
  Array y = x;
  const auto width = static_cast<std::size_t>(x.shape[-1]);
  for (std::size_t start = 0; start < x.values.size(); start += width) {
    double mean = 0.0, variance = 0.0;
    for (std::size_t i = 0; i < width; ++i) mean += x.values[start + i] / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i) variance += std::pow(x.values[start + i] - mean, 2) / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i)
      y.values[start + i] = (x.values[start + i] - mean) / std::sqrt(variance + eps) * (weight != nullptr ? weight->values[i] : 1.0) +
                            (bias != nullptr ? bias->values[i] : 0.0);
  }
  return y;
}

OpCase make(const std::string& name, Shape shape, bool weighted, bool biased, double eps) {
  OpCase op;
  op.name = "layer_norm_" + name;
  op.inputs.push_back({"x", shape});
  if (weighted) op.inputs.push_back({"weight", {shape[-1]}, 0.5, 1.5});
  if (biased) op.inputs.push_back({"bias", {shape[-1]}});
  op.run = [=](Tape& tape, std::span<const Tensor> in) {
    return std::vector{layer_norm(tape, in[0], weighted ? in[1] : Tensor(), biased ? in[weighted ? 2 : 1] : Tensor(), eps)};
  };
  op.reference = [=](std::span<const Array> in) {
    return std::vector{plain(in[0], weighted ? &in[1] : nullptr, biased ? &in[weighted ? 2 : 1] : nullptr, eps)};
  };
  return op;
}

}  // namespace

std::vector<OpCase> layer_norm_cases() {
  return {make("no_rows", {0, 8}, true, true, 1e-5),     make("two", {1, 2}, true, true, 1e-2),
          make("matrix", {7, 64}, true, true, 1e-5),     make("odd", {3, 65}, true, false, 1e-6),
          make("plain", {5, 7}, false, false, 1e-5),     make("bias_only", {5, 7}, false, true, 1e-5),
          make("sequence", {2, 7, 24}, true, true, 1e-6), make("heads", {2, 5, 3, 8}, true, true, 1e-5),
          // On a device: several vectors for each team, a team of several warps, more columns than a team keeps.
          make("turns", {3, 50, 2, 12}, true, true, 1e-5), make("wide", {6, 300}, true, true, 1e-5),
          make("widest", {2, 2050}, true, true, 1e-5)};
}

}  // namespace phasor::ops
