#include "core/ops/case.h"
#include "core/ops/gather_rows/gather_rows.h"

namespace phasor::ops {

namespace {

OpCase make(const std::string& name, Shape x, std::int64_t count, bool padded) {
  OpCase op;
  op.name = "gather_rows_" + name;
  op.inputs.push_back({"x", x});
  op.inputs.push_back({"index", {count}, 0.0, 0.0, x.rows(), padded});
  op.run = [](Tape& tape, std::span<const Tensor> in) { return std::vector{gather_rows(tape, in[0], in[1])}; };
  op.reference = [=](std::span<const Array> in) {
    const auto dim = static_cast<std::size_t>(x.width());
    Array y{{count, x.width()}, {}};
    for (const double at : in[1].values)
      for (std::size_t i = 0; i < dim; ++i)
        y.values.push_back(at < 0.0 ? 0.0 : in[0].values[static_cast<std::size_t>(at) * dim + i]);
    return std::vector{y};
  };
  return op;
}

OpCase all_padding() {
  OpCase op = make("all_padding", {2, 3, 8}, 7, true);
  op.prepare = [](std::vector<Array>& in) { in[1].values.assign(in[1].values.size(), -1.0); };
  return op;
}

}  // namespace

std::vector<OpCase> gather_rows_cases() {
  return {make("none", {2, 7, 8}, 0, false),
          make("one", {1, 1, 1}, 1, false),
          make("repeated", {2, 2, 7}, 65, false),
          make("sparse", {5, 13, 64}, 7, false),
          make("padded", {3, 7, 65}, 64, true),
          make("matrix", {7, 24}, 7, true),
          all_padding()};
}

}  // namespace phasor::ops
