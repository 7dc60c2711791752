#include "core/ops/case.h"
#include "core/ops/linear/linear.h"

namespace phasor::ops {

namespace {

Array plain(const Array& x, const Array& weight, const Array* bias) {
  const auto in = static_cast<std::size_t>(weight.shape[1]), out = static_cast<std::size_t>(weight.shape[0]);
  const auto rows = static_cast<std::size_t>(x.shape.rows());
  Array y{x.shape.with_row({weight.shape[0]}), std::vector<double>(rows * out)};
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t o = 0; o < out; ++o) {
      double sum = bias != nullptr ? bias->values[o] : 0.0;
      for (std::size_t i = 0; i < in; ++i) sum += x.values[r * in + i] * weight.values[o * in + i];
      y.values[r * out + o] = sum;
    }
  return y;
}

OpCase make(const std::string& name, Shape x, std::int64_t out, bool biased) {
  OpCase op;
  op.name = "linear_" + name;
  op.inputs.push_back({"x", x});
  op.inputs.push_back({"weight", {out, x.width()}});
  if (biased) op.inputs.push_back({"bias", {out}});
  op.run = [=](Tape& tape, std::span<const Tensor> in) {
    return std::vector{linear(tape, in[0], in[1], biased ? in[2] : Tensor())};
  };
  op.reference = [=](std::span<const Array> in) { return std::vector{plain(in[0], in[1], biased ? &in[2] : nullptr)}; };
  return op;
}

// The result is used twice and the map applied twice, so that gradients of x and weight are added up by the tape.
OpCase twice() {
  OpCase op;
  op.name = "linear_twice";
  op.inputs = {{"x", {3, 5, 8}}, {"weight", {8, 8}}, {"bias", {8}}};
  op.run = [](Tape& tape, std::span<const Tensor> in) {
    const Tensor once = linear(tape, in[0], in[1], in[2]);
    return std::vector{linear(tape, once, in[1], in[2]), once};
  };
  op.reference = [](std::span<const Array> in) {
    const Array once = plain(in[0], in[1], &in[2]);
    return std::vector{plain(once, in[1], &in[2]), once};
  };
  return op;
}

OpCase constant_input() {
  OpCase op = make("constant_input", {5, 7}, 3, true);
  op.inputs[0].differentiable = false;
  return op;
}

OpCase frozen_weight() {
  OpCase op = make("frozen_weight", {5, 7}, 3, true);
  op.inputs[1].differentiable = op.inputs[2].differentiable = false;
  return op;
}

}  // namespace

std::vector<OpCase> linear_cases() {
  return {make("no_rows", {0, 8}, 4, true),
          make("one", {1, 1}, 1, true),
          make("odd", {7, 65}, 7, false),
          make("odd_bias", {7, 7}, 65, true),
          make("even", {64, 64}, 64, true),
          make("many_rows", {65, 3}, 5, true),
          make("sequence", {2, 7, 24}, 16, true),
          make("sequence_plain", {3, 1, 8}, 1, false),
          make("heads", {2, 5, 3, 8}, 10, false),
          make("heads_bias", {2, 5, 3, 8}, 10, true),
          make("kilobyte_rows", {3, 512}, 5, true),
          twice(),
          constant_input(),
          frozen_weight()};
}

}  // namespace phasor::ops
