#include "core/ops/case.h"
#include "core/ops/concat_time/concat_time.h"

namespace phasor::ops {

namespace {

OpCase make(const std::string& name, const Shape& first, const Shape& second, std::int64_t skip) {
  OpCase op;
  op.name = "concat_time_" + name;
  op.inputs = {{"earlier", first}, {"later", second}};
  op.run = [=](Tape& tape, std::span<const Tensor> in) { return std::vector{concat_time(tape, in[0], in[1], skip)}; };
  op.reference = [=](std::span<const Array> in) {
    const std::int64_t time = first[1] + second[1], width = first.width();
    Array out{first.rank() == 3 ? Shape{first[0], time - skip, first[2]} : Shape{first[0], time - skip, first[2], first[3]},
              {}};
    for (std::int64_t b = 0; b < first[0]; ++b)
      for (std::int64_t t = skip; t < time; ++t)
        for (std::int64_t i = 0; i < width; ++i)
          out.values.push_back(
              t < first[1] ? in[0].values[static_cast<std::size_t>((b * first[1] + t) * width + i)]
                           : in[1].values[static_cast<std::size_t>((b * second[1] + t - first[1]) * width + i)]);
    return std::vector{out};
  };
  op.tolerance = 1e-7;
  return op;
}

/// Nothing before, not even a tensor.
OpCase make_first(const std::string& name, const Shape& shape, std::int64_t skip) {
  OpCase op = make(name, {shape[0], 0, shape[2]}, shape, skip);
  op.run = [=](Tape& tape, std::span<const Tensor> in) { return std::vector{concat_time(tape, {}, in[1], skip)}; };
  return op;
}

}  // namespace

std::vector<OpCase> concat_time_cases() {
  return {make_first("first_piece", {2, 5, 3}, 2),
          make("no_batch", {0, 2, 3}, {0, 1, 3}, 0),
          make("no_past", {2, 0, 3}, {2, 4, 3}, 0),
          make("nothing_new", {2, 4, 3}, {2, 0, 3}, 1),
          make("one_token", {2, 7, 5}, {2, 1, 5}, 0),
          make("heads", {3, 5, 2, 4}, {3, 65, 2, 4}, 0),
          make("forgets_some", {2, 7, 2, 3}, {2, 2, 2, 3}, 4),
          make("forgets_all_of_the_past", {2, 3, 7}, {2, 6, 7}, 3),
          make("forgets_more", {2, 3, 7}, {2, 6, 7}, 5),
          make("forgets_all", {2, 3, 7}, {2, 6, 7}, 9)};
}

}  // namespace phasor::ops
