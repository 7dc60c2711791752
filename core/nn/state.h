#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace phasor {

/// What makes the random numbers of dropout a function: the trial's seed, the step, and which rows of the batch these are.
struct DropoutKey {
  std::uint64_t seed = 0;
  std::int64_t step = 0;       // updates done before this one
  std::int64_t first_row = 0;  // of the whole batch
};

/// Where a piece of a sequence stands.
struct SequenceContext {
  std::int64_t offset = 0;  // position of the first token of this piece
  bool training = false;
  /// Packed rows: i32 [batch, time], for every token the index, within this piece, of the first token of its document;
  /// negative when the document began before this piece (-n: n tokens before). The position of token t is then
  /// t - starts[t], and nothing crosses from one document into the next: not the recurrent state, a convolution's window,
  /// a running phase or an attention score. Empty: every row is one document that began `offset` tokens before.
  Tensor starts = {};
  std::optional<DropoutKey> dropout = {};  // not set: nothing is dropped
};

/// What one layer carries from one piece of a sequence to the next: recurrent state, convolution windows, running phase.
/// Mixer and encoding share it; names are unique within a layer ("s", "q_conv", "phase"). Passing no state means a
/// sequence of its own: nothing comes in and nothing needs to go out.
class State {
 public:
  /// Empty when nothing has been carried yet (start of the sequence).
  Tensor get(std::string_view name) const {
    for (const auto& [key, value] : entries_)
      if (key == name) return value;
    return {};
  }
  void set(std::string_view name, Tensor value) {
    for (auto& [key, old] : entries_)
      if (key == name) {
        old = std::move(value);
        return;
      }
    entries_.emplace_back(std::string(name), std::move(value));
  }
  const std::vector<std::pair<std::string, Tensor>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<std::string, Tensor>> entries_;
};

}  // namespace phasor
