#include "core/ops/case.h"
#include "core/ops/shared_head_linear/shared_head_linear.h"

namespace phasor::ops {

namespace {

OpCase make(const std::string& name, const Shape& x, std::int64_t out, bool biased = true) {
  OpCase op;
  op.name = "shared_head_linear_" + name;
  op.inputs = {{"x", x}, {"weight", {out, x[3]}}};
  if (biased) op.inputs.push_back({"bias", {out}});
  op.run = [=](Tape& tape, std::span<const Tensor> in) {
    return std::vector{shared_head_linear(tape, in[0], in[1], biased ? in[2] : Tensor())};
  };
  op.reference = [=](std::span<const Array> in) {
    Array y{x.with_row({x[2], out}), {}};
    const auto width = static_cast<std::size_t>(x[3]);
    for (std::size_t start = 0; start < in[0].values.size(); start += width)
      for (std::size_t j = 0; j < static_cast<std::size_t>(out); ++j) {
        double sum = biased ? in[2].values[j] : 0.0;
        for (std::size_t i = 0; i < width; ++i) sum += in[0].values[start + i] * in[1].values[j * width + i];
        y.values.push_back(sum);
      }
    return std::vector{y};
  };
  return op;
}

OpCase without_gradient_of(std::size_t input, OpCase op) {
  op.name += "_constant_" + op.inputs[input].name;
  op.inputs[input].differentiable = false;
  return op;
}

}  // namespace

std::vector<OpCase> shared_head_linear_cases() {
  return {make("no_rows", {0, 5, 2, 3}, 4),
          make("no_time", {2, 0, 2, 3}, 4),
          make("one", {1, 1, 1, 1}, 1),
          make("plain", {2, 7, 3, 8}, 4),
          make("no_bias", {2, 7, 3, 8}, 9, false),
          make("wide", {1, 3, 2, 65}, 64),
          make("long", {1, 65, 4, 7}, 5),
          without_gradient_of(0, make("some", {2, 7, 3, 5}, 4)),
          without_gradient_of(1, make("some", {2, 7, 3, 5}, 4, false))};
}

}  // namespace phasor::ops
