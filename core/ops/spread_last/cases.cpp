#include "core/ops/case.h"
#include "core/ops/spread_last/spread_last.h"

namespace phasor::ops {

namespace {

/// `positions`: rows of the table, of which the first `time` are read.
OpCase make(const std::string& name, Shape x, std::int64_t positions) {
  OpCase op;
  op.name = "spread_last_" + name;
  op.inputs.push_back({"x", x});
  op.inputs.push_back({"table", {positions, x[2]}});
  op.inputs.back().differentiable = false;
  op.run = [](Tape& tape, std::span<const Tensor> in) { return std::vector{spread_last(tape, in[0], in[1])}; };
  op.reference = [=](std::span<const Array> in) {
    const auto time = static_cast<std::size_t>(x[1]), dim = static_cast<std::size_t>(x[2]);
    Array y = in[0];
    for (std::size_t at = 0; at < y.values.size(); ++at) {
      const std::size_t row = at / (time * dim), place = at % (time * dim), i = at % dim;
      y.values[at] = in[0].values[((row + 1) * time - 1) * dim + i] + in[1].values[place];
    }
    return std::vector{y};
  };
  return op;
}

}  // namespace

std::vector<OpCase> spread_last_cases() {
  return {make("no_rows", {0, 3, 8}, 3), make("one", {1, 1, 1}, 1),     make("one_position", {5, 1, 7}, 4),
          make("even", {2, 64, 8}, 64),  make("odd", {3, 7, 65}, 7),    make("shorter_row", {7, 13, 9}, 65)};
}

}  // namespace phasor::ops
