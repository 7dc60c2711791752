#include "experiments/order.h"

#include "core/base/error.h"
#include "core/base/hash.h"
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

/// The place of `index` in an order of 0 .. count-1 that the stream decides.
std::int64_t permuted(const RandomStream& random, std::int64_t index, std::int64_t count) {
  unsigned half_bits = 1;
  while ((std::uint64_t{1} << (2 * half_bits)) < static_cast<std::uint64_t>(count)) ++half_bits;
  auto place = static_cast<std::uint64_t>(index);
  // Walk the cycle until it comes back into range: a bijection of [0, count) again.
  do place = scramble(random, place, half_bits);
  while (place >= static_cast<std::uint64_t>(count));
  return static_cast<std::int64_t>(place);
}

}  // namespace

std::int64_t training_row(std::uint64_t seed, std::int64_t position, std::int64_t rows) {
  PHASOR_CHECK(position >= 0 && rows > 0, "a position in a training set with rows");
  const RandomStream random(seed, Purpose::order, static_cast<std::uint64_t>(position / rows));
  return permuted(random, position % rows, rows);
}

BatchSource batch_source(std::uint64_t seed, std::int64_t step, const std::vector<Slice>& slices, std::int64_t batch,
                         bool curriculum) {
  PHASOR_CHECK(!slices.empty() && batch > 0 && step >= 0, "a batch of a training set");
  if (slices.size() == 1) return {0, step * batch};
  const auto batches = [&](const Slice& slice) { return (slice.rows + batch - 1) / batch; };
  std::int64_t length = 0;
  for (const Slice& slice : slices) length += batches(slice);
  const std::int64_t epoch = step / length;
  const Purpose purpose{mix64(static_cast<std::uint64_t>(Purpose::order) ^ hash64("batches of slices"))};
  const RandomStream random(seed, purpose, static_cast<std::uint64_t>(epoch));
  std::int64_t place = curriculum ? step % length : permuted(random, step % length, length);
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const std::int64_t own = batches(slices[i]);
    if (place < own) return {i, (epoch * own + place) * batch};
    place -= own;
  }
  throw InternalError("a batch beyond the end of an epoch");
}

}  // namespace phasor
