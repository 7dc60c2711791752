#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace phasor {

/// Where a piece of a sequence stands.
struct SequenceContext {
  std::int64_t offset = 0;  // position of the first token of this piece
  bool training = false;
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
