#include <algorithm>
#include <cmath>

#include "core/ops/case.h"
#include "core/ops/decay_gate/decay_gate.h"

namespace phasor::ops {

namespace {

/// width 0: a decay per head.
OpCase make(const std::string& name, std::int64_t batch, std::int64_t time, std::int64_t heads, std::int64_t width) {
  OpCase op;
  op.name = "decay_gate_" + name;
  const Shape shape = width == 0 ? Shape({batch, time, heads}) : Shape({batch, time, heads, width});
  const std::int64_t row = heads * std::max<std::int64_t>(width, 1);
  op.inputs = {{"x", shape, -30.0, 5.0}, {"bias", {row}}, {"log_rate", {heads}, -2.0, 2.7}};
  op.run = [](Tape& tape, std::span<const Tensor> in) { return std::vector{decay_gate(tape, in[0], in[1], in[2])}; };
  op.reference = [=](std::span<const Array> in) {
    Array y = in[0];
    for (std::size_t at = 0; at < y.values.size(); ++at) {
      const std::size_t i = at % static_cast<std::size_t>(row),
                        h = i * static_cast<std::size_t>(heads) / static_cast<std::size_t>(row);
      y.values[at] = -std::exp(in[2].values[h]) * std::log1p(std::exp(in[0].values[at] + in[1].values[i]));
    }
    return std::vector{y};
  };
  return op;
}

}  // namespace

std::vector<OpCase> decay_gate_cases() {
  return {make("no_rows", 0, 3, 2, 0), make("one", 1, 1, 1, 0),       make("heads", 2, 7, 3, 0),
          make("eight", 2, 5, 8, 0),   make("channels", 2, 5, 3, 16), make("channels_odd", 1, 7, 2, 13)};
}

}  // namespace phasor::ops
