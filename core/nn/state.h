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
  /// Where a device finds the step when the kernel runs; `step` is 0 then. Null: it is `step`.
  const std::int64_t* step_at = nullptr;
};

/// Is shown what a layer computes on the way, for figures (phasor plot, kind spectra). What has one of these inside shows it,
/// and does the same whether or not somebody looks; other names may follow, what is shown nowhere is not there:
///     temperature [planes]                     encoding: radians per unit of phase, or per token where there is no phase
///     phase       [batch, time, heads, planes]  encoding: per step, after gate and bias, before the temperature
///     phase_gate  [batch, time, heads] or [batch, time, heads * planes]  encoding: factor of the phase per step
///     log_decay   [batch, time, heads] or [batch, time, heads, channels]  mixer: logarithm of what it keeps, <= 0
///     write_gate  [batch, time, heads]          mixer: strength of what it writes (beta of the delta rule)
class Inspector {
 public:
  virtual ~Inspector() = default;
  virtual void enter(std::int64_t layer) = 0;  // before a layer; -1 before the embedding
  virtual void show(std::string_view name, const Tensor& value) = 0;
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
  Inspector* inspector = nullptr;          // null: nobody looks
  void show(std::string_view name, const Tensor& value) const {
    if (inspector != nullptr) inspector->show(name, value);
  }
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
