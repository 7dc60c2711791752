#include "core/ops/case.h"
#include "core/ops/sum_norm/sum_norm.h"

namespace phasor::ops {

namespace {

OpCase make(const std::string& name, Shape shape, double eps = 1e-12) {
  OpCase op;
  op.name = "sum_norm_" + name;
  op.inputs.push_back({"x", shape, 0.1, 1.0});
  op.run = [=](Tape& tape, std::span<const Tensor> in) { return std::vector{sum_norm(tape, in[0], eps)}; };
  op.reference = [=](std::span<const Array> in) {
    Array y = in[0];
    const auto width = static_cast<std::size_t>(shape[-1]);
    for (std::size_t start = 0; start < y.values.size(); start += width) {
      double sum = eps;
      for (std::size_t i = start; i < start + width; ++i) sum += in[0].values[i];
      for (std::size_t i = start; i < start + width; ++i) y.values[i] /= sum;
    }
    return std::vector{y};
  };
  return op;
}

// A vector of zeros, and one so short that eps decides.
OpCase short_vectors() {
  OpCase op = make("short", {4, 8}, 1e-1);
  op.prepare = [](std::vector<Array>& in) {
    for (std::size_t i = 0; i < 8; ++i) {
      in[0].values[i] = 0.0;
      in[0].values[8 + i] *= 0.03125;
    }
  };
  return op;
}

}  // namespace

std::vector<OpCase> sum_norm_cases() {
  return {make("no_rows", {0, 8}),     make("one", {1, 1}, 1e-2),       make("odd", {7, 65}),
          make("heads", {2, 5, 3, 8}), make("heads_odd", {2, 3, 4, 7}), short_vectors()};
}

}  // namespace phasor::ops
