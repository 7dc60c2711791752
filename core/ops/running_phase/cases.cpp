#include <cmath>

#include "core/ops/case.h"
#include "core/ops/running_phase/running_phase.h"

namespace phasor::ops {

namespace {

struct Options {
  Shape increments;  // [batch, time, heads, planes]
  bool state = false, learned_temperature = true, want_state = true, packed = false;
  double reach = 1.0;  // of the increments
};

std::vector<Array> plain(const Options& o, std::span<const Array> in) {
  const std::int64_t batch = o.increments[0], time = o.increments[1], planes = o.increments[3];
  const std::int64_t width = o.increments.width();
  const Array* starts = o.packed ? &in.back() : nullptr;
  Array angle{o.increments, std::vector<double>(in[0].values.size())}, state{{batch, o.increments[2], planes}, {}};
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t c = 0; c < width; ++c) {
      long double sum = o.state ? in[2].values[static_cast<std::size_t>(b * width + c)] : 0.0;
      for (std::int64_t t = 0; t < time; ++t) {
        const auto at = static_cast<std::size_t>((b * time + t) * width + c);
        if (document_start(starts, b, t) == t) sum = 0.0L;
        sum += in[0].values[at];
        const double product = static_cast<double>(sum * in[1].values[static_cast<std::size_t>(c % planes)]);
        angle.values[at] = std::atan2(std::sin(product), std::cos(product));
      }
      state.values.push_back(static_cast<double>(sum));
    }
  if (!o.want_state) return {angle};
  return {angle, state};
}

OpCase make(const std::string& name, const Options& o) {
  OpCase op;
  op.name = "running_phase_" + name;
  op.inputs.push_back({"increments", o.increments, -o.reach, o.reach});
  op.inputs.push_back({"temperature", {o.increments[3]}, 0.1, 1.0});
  op.inputs.back().differentiable = o.learned_temperature;
  if (o.state) {
    op.inputs.push_back({"state", {o.increments[0], o.increments[2], o.increments[3]}, -2.0, 2.0});
    op.inputs.back().always_f64 = true;
  }
  if (o.packed) {
    op.inputs.push_back(packed_starts(o.increments[0], o.increments[1]));
    op.prepare = [](std::vector<Array>& in) { prepare_starts(in.back()); };
  }
  op.run = [=](Tape& tape, std::span<const Tensor> in) {
    const Phase out = running_phase(tape, in[0], in[1], o.state ? in[2] : Tensor(), o.want_state, o.packed ? in.back() : Tensor());
    return o.want_state ? std::vector{out.angle, out.state} : std::vector{out.angle};
  };
  op.reference = [=](std::span<const Array> in) { return plain(o, in); };
  op.tolerance = 1e-6;
  if (o.reach > 1.0) op.step = 1e-6;  // a longer one would cross the jump from pi to -pi
  return op;
}

}  // namespace

std::vector<OpCase> running_phase_cases() {
  return {make("no_rows", {.increments = {0, 3, 2, 4}, .state = true}),
          make("no_time", {.increments = {2, 0, 2, 3}, .state = true}),
          make("one", {.increments = {1, 1, 1, 1}}),
          make("one_token", {.increments = {2, 1, 3, 8}, .state = true}),
          make("plain", {.increments = {2, 7, 2, 8}, .want_state = false}),
          make("fixed_temperature", {.increments = {1, 64, 1, 5}, .state = true, .learned_temperature = false}),
          make("wide", {.increments = {2, 9, 3, 65}, .state = true}),
          make("packed", {.increments = {4, 21, 2, 3}, .state = true, .packed = true}),
          make("packed_no_state", {.increments = {2, 33, 1, 5}, .want_state = false, .packed = true}),
          make("packed_long", {.increments = {3, 200, 1, 3}, .state = true, .packed = true}),
          make("packed_no_time", {.increments = {2, 0, 2, 3}, .state = true, .packed = true}),
          make("many_turns", {.increments = {1, 65, 2, 4}, .state = true, .reach = 20.0})};
}

}  // namespace phasor::ops
