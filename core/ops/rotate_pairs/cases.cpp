#include <complex>

#include "core/ops/case.h"
#include "core/ops/rotate_pairs/rotate_pairs.h"

namespace phasor::ops {

namespace {

/// Planes as complex numbers, multiplied by e^(i angle).
Array plain(const Array& x, const Array& angle, PairLayout layout) {
  const std::int64_t time = x.shape[1], heads = x.shape[2], width = x.shape[3], planes = angle.shape[-1];
  Array y = x;
  for (std::int64_t r = 0; r < x.shape.rows(); ++r)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < planes; ++i) {
        const int rank = angle.shape.rank();
        const std::int64_t turn = (rank == 2 ? r % time : rank == 3 ? r : r * heads + h) * planes + i;
        const std::int64_t start = (r * heads + h) * width;
        const auto a = static_cast<std::size_t>(start + (layout == PairLayout::half_split ? i : 2 * i));
        const auto b = static_cast<std::size_t>(start + (layout == PairLayout::half_split ? i + planes : 2 * i + 1));
        const std::complex<double> to = std::complex<double>(x.values[a], x.values[b]) *
                                        std::polar(1.0, angle.values[static_cast<std::size_t>(turn)]);
        y.values[a] = to.real();
        y.values[b] = to.imag();
      }
  return y;
}

struct Options {
  Shape q;  // [batch, time, heads, width]
  std::int64_t planes;
  PairLayout layout = PairLayout::half_split;
  bool shared = false, by_row = false;  // angles that the heads share, one for all rows or one for each
  std::int64_t k_heads = 0;  // as q when 0
  bool same = false;         // k is q itself
  bool fixed = false;        // angles are constants
  double reach = 3.14;
};

OpCase make(const std::string& name, const Options& o) {
  OpCase op;
  op.name = "rotate_pairs_" + name;
  op.inputs.push_back({"q", o.q});
  if (!o.same) op.inputs.push_back({"k", o.q.with_row({o.k_heads > 0 ? o.k_heads : o.q[2], o.q[3]})});
  const Shape angle = o.shared   ? Shape{o.q[1], o.planes}
                      : o.by_row ? Shape{o.q[0], o.q[1], o.planes}
                                 : o.q.with_row({o.q[2], o.planes});
  op.inputs.push_back({"angle", angle, -o.reach, o.reach});
  op.inputs.back().differentiable = !o.shared && !o.by_row && !o.fixed;
  const std::size_t k = o.same ? 0 : 1;
  op.run = [=](Tape& tape, std::span<const Tensor> in) {
    const Rotated out = rotate_pairs(tape, in[0], in[k], in[k + 1], o.layout);
    return std::vector{out.q, out.k};
  };
  op.reference = [=](std::span<const Array> in) {
    return std::vector{plain(in[0], in[k + 1], o.layout), plain(in[k], in[k + 1], o.layout)};
  };
  op.tolerance = 1e-6;
  return op;
}

}  // namespace

std::vector<OpCase> rotate_pairs_cases() {
  constexpr auto interleaved = PairLayout::interleaved;
  return {
      make("no_rows", {.q = {0, 3, 2, 4}, .planes = 2}),
      make("no_time", {.q = {2, 0, 2, 4}, .planes = 2, .shared = true}),
      make("one", {.q = {1, 1, 1, 2}, .planes = 1}),
      make("no_planes", {.q = {2, 3, 2, 4}, .planes = 0}),
      make("plain", {.q = {2, 7, 3, 8}, .planes = 4}),
      make("partial", {.q = {2, 5, 2, 9}, .planes = 3}),
      make("wide", {.q = {1, 3, 2, 130}, .planes = 65}),
      make("two_blocks", {.q = {1, 2, 2, 256}, .planes = 128}),
      make("interleaved", {.q = {2, 5, 2, 14}, .planes = 7, .layout = interleaved}),
      make("interleaved_partial", {.q = {1, 3, 2, 133}, .planes = 65, .layout = interleaved}),
      make("fixed", {.q = {2, 4, 2, 16}, .planes = 8, .fixed = true}),
      make("shared", {.q = {2, 64, 2, 16}, .planes = 8, .shared = true}),
      make("shared_grouped", {.q = {2, 5, 6, 10}, .planes = 4, .shared = true, .k_heads = 2}),
      make("shared_interleaved", {.q = {2, 5, 4, 8}, .planes = 3, .layout = interleaved, .shared = true, .k_heads = 1}),
      make("shared_wide", {.q = {2, 2, 2, 144}, .planes = 70, .shared = true}),
      make("by_row", {.q = {3, 5, 2, 16}, .planes = 8, .by_row = true}),
      make("by_row_grouped", {.q = {2, 5, 6, 10}, .planes = 4, .by_row = true, .k_heads = 2}),
      make("by_row_wide", {.q = {2, 3, 2, 144}, .planes = 70, .layout = interleaved, .by_row = true}),
      make("by_row_same", {.q = {2, 5, 2, 10}, .planes = 5, .by_row = true, .same = true}),
      make("same", {.q = {2, 5, 2, 10}, .planes = 4, .same = true}),
      make("same_shared", {.q = {2, 5, 2, 10}, .planes = 5, .shared = true, .same = true}),
      make("large_angles", {.q = {2, 7, 3, 8}, .planes = 4, .reach = 3e4})};
}

}  // namespace phasor::ops
