#include <cmath>

#include "core/ops/case.h"
#include "core/ops/weight_norm/weight_norm.h"

namespace phasor::ops {

namespace {

/// Vectors of `length` elements `step` apart, starting at `first`, with one scale.
void normalise(const Array& w, double scale, std::int64_t first, std::int64_t length, std::int64_t step, Array& y) {
  double square = 0.0;
  for (std::int64_t i = 0; i < length; ++i) {
    const double value = w.values[static_cast<std::size_t>(first + i * step)];
    square += value * value;
  }
  const double norm = std::max(std::sqrt(square), 1e-12);
  for (std::int64_t i = 0; i < length; ++i) {
    const auto at = static_cast<std::size_t>(first + i * step);
    y.values[at] = scale * w.values[at] / norm;
  }
}

OpCase rows(const std::string& name, std::int64_t out, std::int64_t in) {
  OpCase op;
  op.name = "weight_norm_rows_" + name;
  op.inputs = {{"w", {out, in}}, {"scale", {1}, 0.5, 2.0}};
  op.run = [](Tape& tape, std::span<const Tensor> x) { return std::vector{weight_norm_rows(tape, x[0], x[1])}; };
  op.reference = [=](std::span<const Array> x) {
    Array y = x[0];
    for (std::int64_t r = 0; r < out; ++r) normalise(x[0], x[1].values[0], r * in, in, 1, y);
    return std::vector{y};
  };
  return op;
}

OpCase columns(const std::string& name, std::int64_t heads, std::int64_t in, std::int64_t out) {
  OpCase op;
  op.name = "weight_norm_columns_" + name;
  op.inputs = {{"w", {heads, in, out}}, {"scale", {heads}, 0.5, 2.0}};
  op.run = [](Tape& tape, std::span<const Tensor> x) { return std::vector{weight_norm_columns(tape, x[0], x[1])}; };
  op.reference = [=](std::span<const Array> x) {
    Array y = x[0];
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t c = 0; c < out; ++c)
        normalise(x[0], x[1].values[static_cast<std::size_t>(h)], h * in * out + c, in, out, y);
    return std::vector{y};
  };
  return op;
}

/// One vector far below the smallest norm: it is divided by 1e-12. Differences need a step of its size, and all other
/// gradients vanish beside that of the tiny vector, so only it is there.
OpCase tiny(OpCase op) {
  op.name += "_tiny";
  op.inputs[0].low = -1e-14;
  op.inputs[0].high = 1e-14;
  op.inputs[1].differentiable = false;
  op.step = 1e-15;
  return op;
}

}  // namespace

std::vector<OpCase> weight_norm_cases() {
  return {rows("none", 0, 5),        rows("one", 1, 2),         rows("plain", 7, 8),
          rows("wide", 3, 65),       rows("tall", 64, 7),       tiny(rows("short", 2, 3)),
          columns("none", 0, 3, 4),  columns("one", 1, 2, 1),   columns("plain", 3, 7, 8),
          columns("wide", 2, 5, 65), columns("tall", 2, 64, 7), tiny(columns("short", 2, 3, 2))};
}

}  // namespace phasor::ops
