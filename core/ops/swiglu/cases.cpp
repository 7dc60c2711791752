#include <cmath>

#include "core/ops/case.h"
#include "core/ops/linear/linear.h"
#include "core/ops/swiglu/swiglu.h"

namespace phasor::ops {

namespace {

Array plain(const Array& gate, const Array& up) {
  Array y = up;
  for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] *= gate.values[i] / (1.0 + std::exp(-gate.values[i]));
  return y;
}

OpCase make(const std::string& name, Shape shape, double size = 4.0) {
  OpCase op;
  op.name = "swiglu_" + name;
  op.inputs = {{"gate", shape, -size, size}, {"up", shape}};
  op.run = [](Tape& tape, std::span<const Tensor> in) { return std::vector{swiglu(tape, in[0], in[1])}; };
  op.reference = [](std::span<const Array> in) { return std::vector{plain(in[0], in[1])}; };
  return op;
}

// As in an MLP: gate and up are the columns of one product.
OpCase columns() {
  OpCase op;
  op.name = "swiglu_columns";
  op.inputs = {{"x", {2, 5, 6}}, {"weight", {14, 6}}};
  op.run = [](Tape& tape, std::span<const Tensor> in) {
    const std::int64_t widths[] = {7, 7};
    const Columns parts = tape.split(linear(tape, in[0], in[1], Tensor()), widths);
    return std::vector{swiglu(tape, parts[0], parts[1])};
  };
  op.reference = [](std::span<const Array> in) {
    Array gate{{2, 5, 7}, {}}, up{{2, 5, 7}, {}};
    for (std::size_t r = 0; r < 10; ++r)
      for (std::size_t o = 0; o < 14; ++o) {
        double sum = 0.0;
        for (std::size_t i = 0; i < 6; ++i) sum += in[0].values[r * 6 + i] * in[1].values[o * 6 + i];
        (o < 7 ? gate : up).values.push_back(sum);
      }
    return std::vector{plain(gate, up)};
  };
  return op;
}

OpCase without_gradient_of(std::size_t input, OpCase op) {
  op.name += "_constant_" + op.inputs[input].name;
  op.inputs[input].differentiable = false;
  return op;
}

}  // namespace

std::vector<OpCase> swiglu_cases() {
  return {make("no_rows", {0, 8}),
          make("one", {1, 1}),
          make("odd", {7, 65}),
          make("even", {2, 7, 64}),
          make("wide", {3, 600}),
          make("far", {7, 7}, 90.0),
          columns(),
          without_gradient_of(0, make("some", {5, 7})),
          without_gradient_of(1, make("some", {5, 7}))};
}

}  // namespace phasor::ops
