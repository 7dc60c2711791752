#include <cmath>

#include "core/ops/case.h"
#include "core/ops/short_conv/short_conv.h"

namespace phasor::ops {

namespace {

struct Options {
  Shape x;
  std::int64_t window = 4;
  bool bias = false, silu = false, state = false, packed = false;
  std::vector<std::int64_t> pieces = {};  // lengths; the sequence is worked on whole when empty
};

std::vector<Array> plain(const Options& o, std::span<const Array> in) {
  const std::int64_t batch = o.x[0], time = o.x[1], channels = o.x.width(), window = o.window;
  std::size_t next = 2;
  const Array* bias = o.bias ? &in[next++] : nullptr;
  const Array* state = o.state ? &in[next++] : nullptr;
  const Array* starts = o.packed ? &in.back() : nullptr;
  // The input at any time from -window on, as the document of `reader` sees it.
  const auto at = [&](std::int64_t b, std::int64_t t, std::int64_t c, std::int64_t reader) {
    if (t < document_start(starts, b, reader)) return 0.0;
    if (t >= 0) return in[0].values[static_cast<std::size_t>((b * time + t) * channels + c)];
    return state != nullptr ? state->values[static_cast<std::size_t>((b * channels + c) * window + t + window)] : 0.0;
  };
  Array y{o.x, {}}, out{{batch, channels, window}, {}};
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t t = 0; t < time; ++t)
      for (std::int64_t c = 0; c < channels; ++c) {
        double z = bias != nullptr ? bias->values[static_cast<std::size_t>(c)] : 0.0;
        for (std::int64_t j = 0; j < window; ++j)
          z += in[1].values[static_cast<std::size_t>(c * window + j)] * at(b, t - (window - 1) + j, c, t);
        y.values.push_back(o.silu ? z / (1.0 + std::exp(-z)) : z);
      }
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t j = 0; j < window; ++j) out.values.push_back(at(b, time - window + j, c, time - 1));
  return {y, out};
}

OpCase make(const std::string& name, const Options& o) {
  OpCase op;
  op.name = "short_conv_" + name;
  op.inputs.push_back({"x", o.x});
  op.inputs.push_back({"weight", {o.x.width(), o.window}});
  if (o.bias) op.inputs.push_back({"bias", {o.x.width()}});
  if (o.state) op.inputs.push_back({"state", {o.x[0], o.x.width(), o.window}});
  if (o.packed) {
    op.inputs.push_back(packed_starts(o.x[0], o.x[1]));
    op.prepare = [](std::vector<Array>& in) { prepare_starts(in.back()); };
  }
  op.run = [=](Tape& tape, std::span<const Tensor> in) {
    std::size_t next = 2;
    const Tensor bias = o.bias ? in[next++] : Tensor();
    const Tensor state = o.state ? in[next++] : Tensor();
    const ConvResult out = short_conv(tape, in[0], in[1], bias, o.silu, state, true, o.packed ? in.back() : Tensor());
    return std::vector{out.y, out.state};
  };
  op.reference = [=](std::span<const Array> in) { return plain(o, in); };
  return op;
}

/// x arrives as one input per piece; the state is carried from call to call.
OpCase make_pieces(const std::string& name, const Options& o) {
  OpCase op;
  op.name = "short_conv_pieces_" + name;
  for (const std::int64_t length : o.pieces) op.inputs.push_back({"x", {o.x[0], length, o.x.width()}});
  const std::size_t count = o.pieces.size();
  op.inputs.push_back({"weight", {o.x.width(), o.window}});
  op.inputs.push_back({"bias", {o.x.width()}});
  op.inputs.push_back({"state", {o.x[0], o.x.width(), o.window}});
  op.run = [=](Tape& tape, std::span<const Tensor> in) {
    std::vector<Tensor> outputs;
    Tensor state = in[count + 2];
    for (std::size_t i = 0; i < count; ++i) {
      const ConvResult out = short_conv(tape, in[i], in[count], in[count + 1], o.silu, state, true);
      outputs.push_back(out.y);
      state = out.state;
    }
    outputs.push_back(state);
    return outputs;
  };
  op.reference = [=](std::span<const Array> in) {
    const std::int64_t batch = o.x[0], time = o.x[1], channels = o.x.width();
    Array whole{o.x, std::vector<double>(static_cast<std::size_t>(o.x.size()))};
    const auto move = [&](bool join, std::vector<Array>& pieces, Array& sequence) {
      std::int64_t start = 0;
      for (std::size_t i = 0; i < count; start += o.pieces[i++])
        for (std::int64_t b = 0; b < batch; ++b)
          for (std::int64_t n = 0; n < o.pieces[i] * channels; ++n) {
            double& part = pieces[i].values[static_cast<std::size_t>(b * o.pieces[i] * channels + n)];
            double& all = sequence.values[static_cast<std::size_t>((b * time + start) * channels + n)];
            (join ? all : part) = join ? part : all;
          }
    };
    std::vector<Array> pieces(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(count));
    move(true, pieces, whole);
    std::vector<Array> result = plain(o, std::vector<Array>{whole, in[count], in[count + 1], in[count + 2]});
    move(false, pieces, result[0]);
    pieces.push_back(result[1]);
    return pieces;
  };
  return op;
}

}  // namespace

std::vector<OpCase> short_conv_cases() {
  return {make("no_rows", {.x = {0, 5, 3}, .state = true}),
          make("no_time", {.x = {2, 0, 3}, .bias = true, .silu = true, .state = true}),
          make("one", {.x = {1, 1, 1}}),
          make("one_token", {.x = {2, 1, 7}, .bias = true, .silu = true, .state = true}),
          make("two_tokens", {.x = {1, 2, 65}, .silu = true, .state = true}),
          make("three_tokens_no_state", {.x = {2, 3, 5}, .bias = true}),
          make("plain", {.x = {2, 7, 64}}),
          make("bias_state", {.x = {2, 9, 7}, .bias = true, .state = true}),
          make("silu", {.x = {1, 65, 9}, .bias = true, .silu = true}),
          make("heads", {.x = {2, 6, 3, 5}, .silu = true, .state = true}),
          make("two_blocks", {.x = {2, 5, 300}, .bias = true, .silu = true, .state = true}),
          make("many_rows", {.x = {70, 2, 288}, .window = 3, .bias = true, .silu = true}),
          make("one_tap", {.x = {2, 4, 5}, .window = 1, .bias = true, .silu = true, .state = true}),
          make("two_taps", {.x = {2, 4, 5}, .window = 2, .state = true}),
          make("three_taps", {.x = {2, 6, 5}, .window = 3, .silu = true, .state = true}),
          make("seven_taps", {.x = {2, 5, 6}, .window = 7, .bias = true, .silu = true, .state = true}),
          make("more_taps_than_time", {.x = {1, 7, 65}, .window = 9, .bias = true, .state = true}),
          make("packed", {.x = {4, 20, 5}, .bias = true, .silu = true, .state = true, .packed = true}),
          make("packed_no_state", {.x = {2, 40, 3}, .packed = true}),
          make("packed_three_taps", {.x = {3, 7, 4}, .window = 3, .state = true, .packed = true}),
          make("packed_seven_taps", {.x = {4, 21, 3}, .window = 7, .bias = true, .state = true, .packed = true}),
          make("packed_short_last", {.x = {2, 2, 3}, .silu = true, .state = true, .packed = true}),
          make("packed_no_time", {.x = {2, 0, 3}, .state = true, .packed = true}),
          make_pieces("of_one", {.x = {2, 4, 3}, .bias = true, .silu = true, .state = true, .pieces = {1, 1, 1, 1}}),
          make_pieces("of_two", {.x = {1, 6, 5}, .bias = true, .silu = true, .state = true, .pieces = {2, 2, 2}}),
          make_pieces("of_all", {.x = {2, 10, 3}, .bias = true, .state = true, .pieces = {1, 2, 3, 4}}),
          make_pieces("with_none", {.x = {1, 7, 2}, .bias = true, .silu = true, .state = true, .pieces = {4, 0, 3}})};
}

}  // namespace phasor::ops
