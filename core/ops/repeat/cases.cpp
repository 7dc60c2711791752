#include "core/ops/case.h"
#include "core/ops/repeat/repeat.h"

namespace phasor::ops {

namespace {

OpCase make(const std::string& name, Shape shape, std::int64_t times) {
  OpCase op;
  op.name = "repeat_" + name;
  op.inputs.push_back({"x", shape});
  op.run = [=](Tape& tape, std::span<const Tensor> in) { return std::vector{repeat(tape, in[0], times)}; };
  op.reference = [=](std::span<const Array> in) {
    const std::int64_t n = shape[3], vectors = shape[0] * shape[1] * shape[2];
    Array y{{shape[0], shape[1], shape[2], n * times}, {}};
    for (std::int64_t v = 0; v < vectors; ++v)
      for (std::int64_t i = 0; i < n * times; ++i)
        y.values.push_back(in[0].values[static_cast<std::size_t>(v * n + i % n)]);
    return std::vector{y};
  };
  return op;
}

}  // namespace

std::vector<OpCase> repeat_cases() {
  return {make("no_rows", {0, 3, 2, 4}, 2), make("once", {2, 3, 2, 5}, 1),        make("planes", {2, 5, 3, 8}, 2),
          make("odd", {2, 7, 3, 7}, 2),     make("one_to_all", {2, 5, 2, 1}, 64), make("thrice", {1, 65, 1, 3}, 3)};
}

}  // namespace phasor::ops
