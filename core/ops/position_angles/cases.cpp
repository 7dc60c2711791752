#include <algorithm>
#include <cmath>

#include "core/ops/case.h"
#include "core/ops/position_angles/position_angles.h"

namespace phasor::ops {

namespace {

/// `batch` > 0: packed rows.
OpCase make(const std::string& name, std::int64_t offset, std::int64_t time, std::int64_t planes,
            std::int64_t batch = 0) {
  OpCase op;
  op.name = "position_angles_" + name;
  op.inputs.push_back({"frequencies", {planes}, 1e-5, 1.0});
  op.inputs.back().always_f64 = true;
  op.inputs.back().differentiable = false;
  if (batch > 0) {
    op.inputs.push_back(packed_starts(batch, time));
    op.prepare = [](std::vector<Array>& in) { prepare_starts(in.back()); };
  }
  op.run = [=](Tape& tape, std::span<const Tensor> in) {
    return std::vector{position_angles(tape, in[0], offset, time, batch > 0 ? in[1] : Tensor())};
  };
  op.reference = [=](std::span<const Array> in) {
    Array angle{batch > 0 ? Shape{batch, time, planes} : Shape{time, planes}, {}};
    for (std::int64_t b = 0; b < std::max<std::int64_t>(batch, 1); ++b)
      for (std::int64_t t = 0; t < time; ++t)
        for (const double frequency : in[0].values) {
          const std::int64_t position = t + offset - (batch > 0 ? document_start(&in[1], b, t) : 0);
          const long double product = static_cast<long double>(position) * frequency;
          angle.values.push_back(static_cast<double>(std::atan2(std::sin(product), std::cos(product))));
        }
    return std::vector{angle};
  };
  op.tolerance = 1e-6;
  return op;
}

}  // namespace

std::vector<OpCase> position_angles_cases() {
  return {make("no_time", 3, 0, 4), make("one", 0, 1, 1),        make("plain", 0, 7, 8),
          make("wide", 5, 64, 65),  make("far", 65'535, 65, 16), make("very_far", 10'000'000, 3, 7),
          make("packed", 0, 40, 5, 3), make("packed_offset", -7, 9, 3, 4)};
}

}  // namespace phasor::ops
