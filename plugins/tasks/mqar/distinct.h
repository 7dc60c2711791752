#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/error.h"
#include "core/base/philox.h"

namespace phasor::mqar {

/// Draws different numbers, every ordered choice equally likely: the first places of a Fisher-Yates shuffle of which
/// only the places that moved are kept. So the work depends on how many are drawn, not on how many there are.
class Distinct {
 public:
  /// `most`: numbers of one draw, at most.
  explicit Distinct(std::size_t most) : moved_(std::bit_ceil(2 * most + 1)) {}

  /// Fills `out` with numbers from [first, first + count).
  void draw(Draws& draws, std::int64_t first, std::int64_t count, std::span<std::int32_t> out) {
    PHASOR_CHECK(2 * out.size() < moved_.size() && static_cast<std::int64_t>(out.size()) <= count,
                 "as many different numbers as are drawn");
    std::fill(moved_.begin(), moved_.end(), Moved{});
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto place = static_cast<std::int64_t>(i);
      const std::int64_t other =
          place + static_cast<std::int64_t>(draws.below(static_cast<std::uint64_t>(count - place)));
      const std::int64_t here = find(place).value(place);
      Moved& there = find(other);
      out[i] = static_cast<std::int32_t>(first + there.value(other));
      there = {other, here};
    }
  }

 private:
  struct Moved {
    std::int64_t place = -1, content = 0;
    std::int64_t value(std::int64_t unmoved) const { return place < 0 ? unmoved : content; }
  };
  /// The entry of a place, or the empty one where it belongs (open addressing, half empty).
  Moved& find(std::int64_t place) {
    std::size_t at = static_cast<std::size_t>(mix64(static_cast<std::uint64_t>(place))) & (moved_.size() - 1);
    while (moved_[at].place >= 0 && moved_[at].place != place) at = (at + 1) & (moved_.size() - 1);
    return moved_[at];
  }
  std::vector<Moved> moved_;
};

}  // namespace phasor::mqar
