#pragma once

#include <cstdint>
#include <span>

#include "core/base/hash.h"
#include "core/base/philox.h"
#include "core/nn/task.h"

namespace phasor {

// Splits that share no row by construction. Every content belongs to one split, by its hash: an eighth of all contents to
// valid, an eighth to test, the rest to train. A row is drawn until its content falls into the split that wants it, which
// leaves its distribution as it was as long as there are many contents.

/// Spaces of at least 2^24 contents are divided; in smaller ones rows are drawn freely and the overlap is measured.
constexpr double log2_divided_space = 24.0;

inline std::uint64_t content_hash(std::span<const std::int32_t> tokens) {
  return hash64({reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes()});
}

constexpr Split split_of(std::uint64_t content) {
  const std::uint64_t eighth = mix64(content) >> 61;
  return eighth == 0 ? Split::valid : (eighth == 1 ? Split::test : Split::train);
}

/// Calls `draw(Draws&)`, which makes a row and returns the hash of its content, until the content belongs to `split`.
/// The stream of an attempt depends on (seed, purpose, index, attempt) only. About 1.3 attempts for train, 8 for others.
template <class Draw>
void draw_in_split(Split split, std::uint64_t seed, Purpose purpose, std::int64_t index, const Draw& draw) {
  for (std::uint64_t attempt = 0;; ++attempt) {
    const Purpose stream = attempt == 0 ? purpose : Purpose{mix64(static_cast<std::uint64_t>(purpose) ^ attempt)};
    Draws draws(seed, stream, static_cast<std::uint64_t>(index));
    if (split_of(draw(draws)) == split) return;
  }
}

}  // namespace phasor
