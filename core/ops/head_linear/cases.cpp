#include "core/ops/case.h"
#include "core/ops/head_linear/head_linear.h"

namespace phasor::ops {

namespace {

std::vector<Array> plain(std::span<const Array> in) {
  const std::int64_t heads = in[0].shape[2], inner = in[0].shape[3], out = in[1].shape[2];
  Array y{in[0].shape.with_row({heads, out}), {}};
  for (std::int64_t r = 0; r < in[0].shape.rows(); ++r)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t j = 0; j < out; ++j) {
        double sum = 0.0;
        for (std::int64_t i = 0; i < inner; ++i)
          sum += in[0].values[static_cast<std::size_t>((r * heads + h) * inner + i)] *
                 in[1].values[static_cast<std::size_t>((h * inner + i) * out + j)];
        y.values.push_back(sum);
      }
  return {y};
}

OpCase make(const std::string& name, const Shape& x, std::int64_t out) {
  OpCase op;
  op.name = "head_linear_" + name;
  op.inputs.push_back({"x", x});
  op.inputs.push_back({"weight", {x[2], x[3], out}});
  op.run = [](Tape& tape, std::span<const Tensor> in) { return std::vector{head_linear(tape, in[0], in[1])}; };
  op.reference = plain;
  return op;
}

}  // namespace

std::vector<OpCase> head_linear_cases() {
  return {make("no_rows", {0, 5, 2, 3}, 4), make("no_time", {2, 0, 2, 3}, 4), make("one", {1, 1, 1, 1}, 1),
          make("plain", {2, 7, 3, 8}, 4),   make("wide", {1, 3, 2, 65}, 64),  make("long", {1, 65, 4, 7}, 5)};
}

}  // namespace phasor::ops
