#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/base/portable_math.h"

namespace phasor {

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a keyed function from counters
// to random words, without any state. Everything here is a pure function of its arguments, on every machine.

using PhiloxKey = std::array<std::uint32_t, 2>;
using PhiloxBlock = std::array<std::uint32_t, 4>;

constexpr PhiloxBlock philox(PhiloxKey key, PhiloxBlock counter) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(first)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// A bijection of 64-bit words that spreads every bit (the finaliser of SplitMix64).
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// Upper half of the 128-bit product.
constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t a_low = a & 0xFFFFFFFFu, a_high = a >> 32, b_low = b & 0xFFFFFFFFu, b_high = b >> 32;
  const std::uint64_t middle = a_high * b_low + ((a_low * b_low) >> 32);
  const std::uint64_t other = a_low * b_high + (middle & 0xFFFFFFFFu);
  return a_high * b_high + (middle >> 32) + (other >> 32);
}

constexpr float to_unit24(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
constexpr double to_unit53(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

/// What random numbers are for: streams of different purposes have nothing in common. Others may be made of a name:
/// `Purpose{hash64("my task")}`.
enum class Purpose : std::uint64_t { initialisation = 1, data = 2, order = 3, dropout = 4, statistics = 5 };

/// For one purpose, different seeds always have different keys.
constexpr PhiloxKey philox_key(std::uint64_t seed, Purpose purpose) {
  const std::uint64_t key = mix64(mix64(static_cast<std::uint64_t>(purpose)) ^ seed);
  return {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
}

/// The random numbers of (seed, purpose, step), by index, in any order. `step` is a training step, the index of a
/// sample, the hash of a parameter's name. Draws of different kinds (bits, uniform, below, normal) at one index are
/// independent of each other, and of those at any other index.
///
/// The counter is {index, index >> 32, step, step >> 32 | attempt << 16 | kind << 28} by words of 32 bits (`|` being
/// exclusive or); `block` has kind 0, so that a kernel can compute the same words from `key()` and `step()`.
class RandomStream {
 public:
  constexpr RandomStream(std::uint64_t seed, Purpose purpose, std::uint64_t step = 0)
      : key_(philox_key(seed, purpose)), step_(step) {}

  constexpr const PhiloxKey& key() const { return key_; }
  constexpr std::uint64_t step() const { return step_; }

  /// Four words at once: the element 4 index + i of `bits32`.
  constexpr PhiloxBlock block(std::uint64_t index) const { return draw(Kind::bits, index, 0); }
  constexpr std::uint32_t bits32(std::uint64_t index) const { return block(index / 4)[index % 4]; }

  /// In [0, 1), a multiple of 2^-53.
  constexpr double uniform(std::uint64_t index) const {
    const PhiloxBlock words = draw(Kind::uniform, index / 2, 0);
    return to_unit53(pair(words, index % 2));
  }
  /// In [0, 1), a multiple of 2^-24; the same word as `bits32(index)`.
  constexpr float uniform24(std::uint64_t index) const { return to_unit24(bits32(index)); }

  /// An integer in [0, bound), each exactly as likely (Lemire, "Fast random integer generation in an interval", 2019):
  /// the upper half of a random 64-bit word times `bound`, drawn again where the lower half shows an incomplete set.
  /// Repeated draws take the second pair of the block, then raise `attempt`; so the result depends on the index only.
  constexpr std::uint64_t below(std::uint64_t index, std::uint64_t bound) const {
    PHASOR_CHECK(bound > 0, "a random integer below 0");
    const std::uint64_t incomplete = (0 - bound) % bound;  // 2^64 mod bound
    for (std::uint32_t attempt = 0;; ++attempt) {
      const PhiloxBlock words = draw(Kind::below, index, attempt);
      for (std::size_t half = 0; half < 2; ++half) {
        const std::uint64_t word = pair(words, half);
        if (word * bound >= incomplete) return multiply_high(word, bound);
      }
    }
  }

  /// Standard normal (Box and Muller 1958), from `portable_math` so that no libm enters. Largest size about 8.6.
  double normal(std::uint64_t index) const {
    const PhiloxBlock words = draw(Kind::normal, index / 2, 0);
    const double radius = std::sqrt(-2.0 * portable::log(to_unit53(pair(words, 0)) + 0x1p-53));  // of (0, 1]
    const portable::SinCos angle = portable::sincos_turns(to_unit53(pair(words, 1)));
    return radius * (index % 2 == 0 ? angle.cos : angle.sin);
  }

 private:
  enum class Kind : std::uint32_t { bits = 0, uniform = 1, below = 2, normal = 3 };

  constexpr PhiloxBlock draw(Kind kind, std::uint64_t index, std::uint32_t attempt) const {
    const std::uint32_t top =
        static_cast<std::uint32_t>(step_ >> 32) ^ (attempt << 16) ^ (static_cast<std::uint32_t>(kind) << 28);
    return philox(key_, {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                         static_cast<std::uint32_t>(step_), top});
  }
  static constexpr std::uint64_t pair(const PhiloxBlock& words, std::size_t half) {
    return words[2 * half] | std::uint64_t{words[2 * half + 1]} << 32;
  }

  PhiloxKey key_;
  std::uint64_t step_;
};

/// Takes a stream in order, for code that makes one sample and draws as it goes. A local variable, never a member: what
/// is made then depends on (seed, purpose, step) only.
class Draws {
 public:
  constexpr Draws(std::uint64_t seed, Purpose purpose, std::uint64_t step) : stream_(seed, purpose, step) {}
  constexpr std::uint64_t below(std::uint64_t bound) { return stream_.below(next_++, bound); }
  constexpr double uniform() { return stream_.uniform(next_++); }
  double normal() { return stream_.normal(next_++); }
  constexpr bool chance(double probability) { return uniform() < probability; }

  /// Every order equally likely (Fisher and Yates).
  template <class T>
  constexpr void shuffle(std::span<T> items) {
    for (std::size_t left = items.size(); left > 1; --left) std::swap(items[left - 1], items[below(left)]);
  }

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

}  // namespace phasor
