#include "core/ops/concat_time/concat_time.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/graph/place.h"
#include "core/ops/concat_time/kernel.h"

namespace phasor::ops {

namespace {

/// A cache of keys grows with every decoded token, and a block of memory serves again only for its own size: L tokens would take
/// L^2 / 2. So the blocks come in steps of an eighth of their size.
Tensor roomy(Tape& tape, Shape shape) {
  const auto size = static_cast<std::uint64_t>(shape.size());
  const std::uint64_t step = std::max<std::uint64_t>(1, std::bit_floor(size) / 8);
  const auto room = static_cast<std::int64_t>((size + step - 1) / step * step);
  return tape.empty({1, room}).columns(0, shape.size()).reshape(shape);
}

}  // namespace

Tensor concat_time(Tape& tape, const Tensor& earlier, const Tensor& later, std::int64_t skip) {
  const Shape &first = earlier ? earlier.shape() : later.shape(), &second = later.shape();
  const auto found = [&] { return first.text() + " and " + second.text(); };
  PHASOR_CHECK(first.rank() >= 3 && first.rank() == second.rank() && first[0] == second[0],
               "concat_time of " + found() + ", expected [batch, time, ..] twice");
  for (int axis = 2; axis < first.rank(); ++axis)
    PHASOR_CHECK(first[axis] == second[axis], "concat_time of " + found() + ", expected equal rows");
  const std::int64_t batch = first[0], width = later.width();
  const std::int64_t both[] = {earlier ? first[1] : 0, second[1]};
  PHASOR_CHECK(skip >= 0 && skip <= both[0] + both[1], "concat_time leaves out more than there is: " + found());
  const std::int64_t time = both[0] + both[1] - skip;
  const Shape shape = first.rank() == 3   ? Shape{batch, time, first[2]}
                      : first.rank() == 4 ? Shape{batch, time, first[2], first[3]}
                                          : Shape{batch, time, first[2], first[3], first[4]};
  const Tensor out = tape.recording() ? tape.output(shape, {&earlier, &later}) : roomy(tape, shape);
  // What is left out of each piece, and where the rest begins in the whole.
  const std::int64_t left_out[] = {std::min(skip, both[0]), std::max<std::int64_t>(0, skip - both[0])};
  const std::int64_t begin[] = {0, both[0] - left_out[0]};
  const Tensor pieces[] = {earlier, later};
  const auto bytes = [element = static_cast<std::int64_t>(size_of(out.dtype())), row = batch * width](std::int64_t steps) {
    return steps * row * element;
  };
  for (std::size_t i = 0; i < 2; ++i)
    launch(tape.stream(), copy_time,
           {pieces[i].view(), out.view(), batch, both[i], left_out[i], time, begin[i], both[i] - left_out[i], width, false},
           {0.0, 2 * bytes(both[i] - left_out[i])});
  if (!tape.wants(out)) return out;
  tape.record([=, out = place_of(out), pieces = std::array{place_of(earlier), place_of(later)}](Tape& t) {
    const Tensor d_out = t.take(out);
    if (!d_out) return;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto piece = t.gradient(pieces[i]);
      if (!piece.tensor) continue;
      launch(t.stream(), copy_time,
             {d_out.view(), piece.tensor.view(), batch, time, begin[i], both[i], left_out[i], both[i] - left_out[i], width,
              piece.accumulate},
             {0.0, (piece.accumulate ? 3 : 2) * bytes(both[i] - left_out[i])});
      if (!piece.accumulate)
        launch(t.stream(), clear_time, {piece.tensor.view(), batch, both[i], 0, left_out[i], width}, {0.0, bytes(left_out[i])});
    }
  });
  return out;
}

}  // namespace phasor::ops
