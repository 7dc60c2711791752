#include <cmath>

#include "core/ops/case.h"
#include "core/ops/rms_norm/rms_norm.h"

namespace phasor::ops {

namespace {

/// Weights that are fewer than the elements of a row repeat.
Array plain(const Array& x, const Array* weight, double eps) {
  Array y = x;
  const auto width = static_cast<std::size_t>(x.shape[-1]);
  for (std::size_t start = 0; start < x.values.size(); start += width) {
    double square = 0.0;
    for (std::size_t i = 0; i < width; ++i) square += x.values[start + i] * x.values[start + i];
    const double r = 1.0 / std::sqrt(square / static_cast<double>(width) + eps);
    for (std::size_t i = 0; i < width; ++i)
      y.values[start + i] =
          x.values[start + i] * r * (weight != nullptr ? weight->values[(start + i) % weight->values.size()] : 1.0);
  }
  return y;
}

OpCase make(const std::string& name, Shape shape, bool weighted, double eps, std::int64_t weights = 1) {
  OpCase op;
  op.name = "rms_norm_" + name;
  op.inputs.push_back({"x", shape});
  if (weighted) op.inputs.push_back({"weight", {weights * shape[-1]}, 0.5, 1.5});
  op.run = [=](Tape& tape, std::span<const Tensor> in) {
    return std::vector{rms_norm(tape, in[0], weighted ? in[1] : Tensor(), eps)};
  };
  op.reference = [=](std::span<const Array> in) { return std::vector{plain(in[0], weighted ? &in[1] : nullptr, eps)}; };
  return op;
}

}  // namespace

std::vector<OpCase> rms_norm_cases() {
  return {make("no_rows", {0, 8}, true, 1e-5),          make("one", {1, 2}, true, 1e-5),
          make("matrix", {7, 64}, true, 1e-5),          make("odd", {3, 65}, true, 1e-6),
          make("plain", {5, 7}, false, 1e-5),           make("sequence", {2, 7, 24}, true, 1e-6),
          make("heads", {2, 5, 3, 8}, true, 1e-5),      make("heads_16", {3, 2, 16}, true, 1e-5),
          make("plain_16", {3, 2, 16}, false, 1e-5),    make("heads_32", {2, 2, 32}, true, 1e-5),
          // On a device: several vectors for each team, a team of several warps.
          make("turns", {3, 50, 2, 12}, true, 1e-5),    make("wide", {6, 300}, true, 1e-5),
          make("per_head", {2, 5, 3, 8}, true, 1e-5, 3)};
}

}  // namespace phasor::ops
