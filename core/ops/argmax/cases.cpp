#include "core/ops/argmax/argmax.h"
#include "core/ops/case.h"

namespace phasor::ops {

namespace {

OpCase make(const std::string& name, Shape shape, bool ties) {
  OpCase op;
  op.name = "argmax_" + name;
  op.inputs.push_back({"logits", shape});
  op.inputs.back().differentiable = false;
  if (ties)
    op.prepare = [](std::vector<Array>& in) {
      for (double& value : in[0].values) value = value > 0.0 ? 1.0 : 0.0;
    };
  op.run = [](Tape& tape, std::span<const Tensor> in) { return std::vector{argmax(tape, in[0])}; };
  op.reference = [=](std::span<const Array> in) {
    Array best{{shape[0]}, {}};
    for (std::int64_t r = 0; r < shape[0]; ++r) {
      std::int64_t at = 0;
      const auto value = [&](std::int64_t i) { return in[0].values[static_cast<std::size_t>(r * shape[1] + i)]; };
      for (std::int64_t i = 1; i < shape[1]; ++i)
        if (value(i) > value(at)) at = i;
      best.values.push_back(static_cast<double>(at));
    }
    return std::vector{best};
  };
  return op;
}

}  // namespace

std::vector<OpCase> argmax_cases() {
  return {make("no_rows", {0, 3}, false), make("one", {1, 1}, false), make("many", {7, 65}, false), make("ties", {9, 8}, true)};
}

}  // namespace phasor::ops
