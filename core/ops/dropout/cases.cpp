#include <cmath>

#include "core/base/hash.h"
#include "core/base/philox.h"
#include "core/ops/case.h"
#include "core/ops/dropout/dropout.h"

namespace phasor::ops {

namespace {

OpCase make(const std::string& name, Shape shape, double rate, DropoutKey key) {
  OpCase op;
  op.name = "dropout_" + name;
  op.inputs.push_back({"x", shape});
  op.run = [=](Tape& tape, std::span<const Tensor> in) { return std::vector{dropout(tape, in[0], rate, key, "here")}; };
  op.reference = [=](std::span<const Array> in) {
    const Purpose purpose{mix64(static_cast<std::uint64_t>(Purpose::dropout) ^ hash64("here"))};
    Array y = in[0];
    const auto row_size = static_cast<std::uint64_t>(shape[1] * shape[2]);
    for (std::size_t i = 0; i < y.values.size(); ++i) {
      const auto row = static_cast<std::uint64_t>(key.first_row) + i / row_size;
      const RandomStream random(key.seed, purpose, static_cast<std::uint64_t>(key.step) * (1u << 24) + row);
      const bool dropped = static_cast<double>(random.bits32(i % row_size)) < std::floor(rate * 0x1p32);
      y.values[i] = dropped ? 0.0 : y.values[i] / (1.0 - rate);
    }
    return std::vector{y};
  };
  return op;
}

}  // namespace

std::vector<OpCase> dropout_cases() {
  return {make("one", {1, 1, 1}, 0.5, {1, 0, 0}), make("odd", {3, 7, 5}, 0.1, {2, 9, 4}),
          make("even", {2, 65, 64}, 0.3, {3, 1000000, 0}), make("none", {2, 3, 4}, 0.0, {4, 1, 1})};
}

}  // namespace phasor::ops
