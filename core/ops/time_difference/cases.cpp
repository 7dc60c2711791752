#include "core/ops/case.h"
#include "core/ops/time_difference/time_difference.h"

namespace phasor::ops {

namespace {

std::vector<Array> plain(const Shape& shape, bool has_state, bool want_state, bool packed, std::span<const Array> in) {
  const Array* starts = packed ? &in.back() : nullptr;
  const std::int64_t batch = shape[0], time = shape[1], width = shape.width();
  const auto at = [&](std::int64_t b, std::int64_t t, std::int64_t c) {
    if (t >= 0) return in[0].values[static_cast<std::size_t>((b * time + t) * width + c)];
    return has_state ? in[1].values[static_cast<std::size_t>(b * width + c)] : 0.0;
  };
  Array y{shape, {}}, state{{batch, width}, {}};
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t t = 0; t < time; ++t)
      for (std::int64_t c = 0; c < width; ++c) y.values.push_back(at(b, t, c) - (document_start(starts, b, t) == t ? 0.0 : at(b, t - 1, c)));
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t c = 0; c < width; ++c) state.values.push_back(at(b, time - 1, c));
  if (!want_state) return {y};
  return {y, state};
}

OpCase make(const std::string& name, const Shape& shape, bool has_state, bool want_state, bool packed = false) {
  OpCase op;
  op.name = "time_difference_" + name;
  op.inputs.push_back({"x", shape});
  if (has_state) op.inputs.push_back({"state", {shape[0], shape.width()}});
  if (packed) {
    op.inputs.push_back(packed_starts(shape[0], shape[1]));
    op.prepare = [](std::vector<Array>& in) { prepare_starts(in.back()); };
  }
  op.run = [=](Tape& tape, std::span<const Tensor> in) {
    const Difference out = time_difference(tape, in[0], has_state ? in[1] : Tensor(), want_state, packed ? in.back() : Tensor());
    return want_state ? std::vector{out.y, out.state} : std::vector{out.y};
  };
  op.reference = [=](std::span<const Array> in) { return plain(shape, has_state, want_state, packed, in); };
  op.tolerance = 1e-6;
  return op;
}

}  // namespace

std::vector<OpCase> time_difference_cases() {
  return {make("no_rows", {0, 4, 3}, true, true),
          make("no_time", {2, 0, 5}, true, true),
          make("no_time_no_state", {2, 0, 5}, false, true),
          make("one", {1, 1, 1}, false, false),
          make("one_token", {2, 1, 7}, true, true),
          make("plain", {2, 7, 64}, false, false),
          make("state", {3, 5, 65}, true, true),
          make("heads", {2, 65, 2, 3}, true, true),
          make("packed", {4, 21, 2, 3}, true, true, true),
          make("packed_no_state", {2, 33, 5}, false, false, true),
          make("packed_no_time", {2, 0, 5}, true, true, true)};
}

}  // namespace phasor::ops
