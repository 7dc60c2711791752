#include "experiments/order.h"

#include "core/base/error.h"
#include "core/base/philox.h"

namespace phasor {

namespace {

/// A keyed bijection of [0, 2^(2 half_bits)): a Feistel network of four rounds.
std::uint64_t scramble(const RandomStream& random, std::uint64_t value, unsigned half_bits) {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t left = value >> half_bits, right = value & mask;
  for (std::uint64_t round = 0; round < 4; ++round) {
    const PhiloxBlock block = random.block((round << 32) | right);
    const std::uint64_t mixed = left ^ ((block[0] | std::uint64_t{block[1]} << 32) & mask);
    left = right;
    right = mixed;
  }
  return left << half_bits | right;
}

}  // namespace

std::int64_t training_row(std::uint64_t seed, std::int64_t position, std::int64_t rows) {
  PHASOR_CHECK(position >= 0 && rows > 0, "a position in a training set with rows");
  const RandomStream random(seed, Purpose::order, static_cast<std::uint64_t>(position / rows));
  unsigned half_bits = 1;
  while ((std::uint64_t{1} << (2 * half_bits)) < static_cast<std::uint64_t>(rows)) ++half_bits;
  auto row = static_cast<std::uint64_t>(position % rows);
  // Walk the cycle until it comes back into range: a bijection of [0, rows) again.
  do row = scramble(random, row, half_bits);
  while (row >= static_cast<std::uint64_t>(rows));
  return static_cast<std::int64_t>(row);
}

}  // namespace phasor
