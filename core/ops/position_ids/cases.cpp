#include "core/ops/case.h"
#include "core/ops/position_ids/position_ids.h"

namespace phasor::ops {

namespace {

OpCase make(const std::string& name, std::int64_t batch, std::int64_t time, std::int64_t offset, bool packed) {
  OpCase op;
  op.name = "position_ids_" + name;
  op.inputs.push_back({"starts", {batch, time}, 0.0, 0.0, time + 1});
  op.run = [=](Tape& tape, std::span<const Tensor> in) {
    return std::vector{position_ids(tape, batch, time, offset, packed ? in[0] : Tensor())};
  };
  op.reference = [=](std::span<const Array> in) {
    Array ids{{batch, time}, {}};
    for (std::int64_t i = 0; i < batch * time; ++i) {
      const auto t = static_cast<double>(i % time);
      ids.values.push_back(packed ? t - in[0].values[static_cast<std::size_t>(i)] : t + static_cast<double>(offset));
    }
    return std::vector{ids};
  };
  return op;
}

}  // namespace

std::vector<OpCase> position_ids_cases() {
  return {make("one", 1, 1, 0, false), make("later", 3, 7, 100, false), make("packed", 2, 65, 0, true)};
}

}  // namespace phasor::ops
