#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "core/graph/tape.h"
#include "core/nn/state.h"
#include "core/ops/short_conv/short_conv.h"
#include "core/spec/json.h"

// What backbones have in common whose keys and values are multiples of the model's width, split into equal heads, and may
// pass a short convolution.

namespace phasor::backbones {

/// Width of one of the equal heads of all keys, or values, which are `expand` times as wide as the model.
inline std::int64_t head_width(std::int64_t dim, double expand, std::int64_t heads) {
  return std::llround(static_cast<double>(dim) * expand) / heads;
}

/// Why they do not come out whole, or nothing. `option`: the name of `expand`.
inline std::optional<std::string> uneven_heads(const char* option, std::int64_t dim, double expand, std::int64_t heads) {
  const double all = static_cast<double>(dim) * expand;
  const std::int64_t width = head_width(dim, expand, heads);
  if (width >= 1 && width * heads == std::llround(all)) return std::nullopt;
  return std::string("dim * ") + option + " = " + shortest(all) + " does not split into " + std::to_string(heads) +
         " equal heads";
}

/// [batch, time, heads * width] -> [batch, time, heads, width]
inline Tensor split_heads(const Tensor& x, std::int64_t heads) {
  return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads});
}

/// [batch, time, heads, width] -> [batch, time, heads * width]
inline Tensor join_heads(const Tensor& x) { return x.reshape({x.size(0), x.size(1), x.size(2) * x.size(3)}); }

/// The causal convolution of a piece, [batch, time, channels]; what stands before the piece is in the state under `name`.
inline Tensor carried_conv(Tape& tape, const Tensor& x, const Tensor& weight, const Tensor& bias, bool silu,
                           const std::string& name, const SequenceContext& context, State* state) {
  const auto result = ops::short_conv(tape, x, weight, bias, silu, state == nullptr ? Tensor() : state->get(name),
                                      state != nullptr, context.starts);
  if (state != nullptr) state->set(name, result.state);
  return result.y;
}

}  // namespace phasor::backbones
