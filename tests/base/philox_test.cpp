#include "core/base/philox.h"

#include <gtest/gtest.h>
#include <numeric>
#include <vector>

namespace phasor {
namespace {

// Known answers of Random123 1.14 (kat_vectors, philox4x32 10), checked while compiling.
static_assert(philox({0, 0}, {0, 0, 0, 0}) == PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox({~0u, ~0u}, {~0u, ~0u, ~0u, ~0u}) == PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}) ==
              PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST(Philox, known_answers_at_run_time) {
  volatile std::uint32_t zero = 0;  // keeps the compiler from answering itself
  const PhiloxBlock block = philox({0xa4093822 + zero, 0x299f31d0 + zero},
                                   {0x243f6a88 + zero, 0x85a308d3 + zero, 0x13198a2e + zero, 0x03707344 + zero});
  EXPECT_EQ(block, (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, multiply_high) {
  EXPECT_EQ(multiply_high(~std::uint64_t{0}, ~std::uint64_t{0}), ~std::uint64_t{0} - 1);
  EXPECT_EQ(multiply_high(std::uint64_t{1} << 63, 2), 1u);
  EXPECT_EQ(multiply_high(0xFFFFFFFFu, 0xFFFFFFFFu), 0u);
  __extension__ using Wide = unsigned __int128;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t a = mix64(i), b = mix64(i + 5000);
    EXPECT_EQ(multiply_high(a, b), static_cast<std::uint64_t>((Wide{a} * b) >> 64));
  }
}

TEST(RandomStream, the_counter_is_as_documented) {
  const RandomStream stream(12, Purpose::dropout, 0x1234'0000'0007u);
  const std::uint64_t index = 0x5'0000'0009u;
  EXPECT_EQ(stream.block(index), philox(stream.key(), {9, 5, 7, 0x1234}));
  EXPECT_EQ(stream.bits32(4 * 17 + 2), stream.block(17)[2]);
  EXPECT_EQ(stream.uniform24(6), static_cast<float>(stream.bits32(6) >> 8) / 16777216.0f);
}

/// The numbers of published results hang on these.
TEST(RandomStream, stays_what_it_is) {
  const RandomStream stream(0, Purpose::initialisation, 0);
  EXPECT_EQ(stream.key(), philox_key(0, Purpose::initialisation));
  EXPECT_EQ(stream.bits32(0), 0xee2e70eeu);
  EXPECT_EQ(stream.below(0, 1000000), 656475u);
  EXPECT_EQ(stream.uniform(1), 0x1.9c3faaf5de7bdp-1);
  EXPECT_EQ(stream.normal(0), -0x1.2243d36190e6bp+0);
  EXPECT_EQ(stream.normal(1), -0x1.f721a42fce224p-3);
}

TEST(RandomStream, streams_differ) {
  const RandomStream base(1, Purpose::data, 5);
  EXPECT_NE(base.bits32(0), RandomStream(2, Purpose::data, 5).bits32(0));
  EXPECT_NE(base.bits32(0), RandomStream(1, Purpose::order, 5).bits32(0));
  EXPECT_NE(base.bits32(0), RandomStream(1, Purpose::data, 6).bits32(0));
  EXPECT_NE(base.bits32(0), base.bits32(1));
  EXPECT_NE(philox_key(0, Purpose::data), philox_key(std::uint64_t{1} << 63, Purpose::data));
}

TEST(RandomStream, uniform_ends_and_moments) {
  EXPECT_EQ(to_unit24(0), 0.0f);
  EXPECT_LT(to_unit24(~0u), 1.0f);
  EXPECT_EQ(to_unit53(0), 0.0);
  EXPECT_LT(to_unit53(~std::uint64_t{0}), 1.0);
  const RandomStream stream(3, Purpose::data, 1);
  double sum = 0, squares = 0;
  constexpr int n = 200000;
  for (std::uint64_t i = 0; i < n; ++i) {
    const double u = stream.uniform(i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / n, 0.5, 5 * 0.2887 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1.0 / 3.0, 5 * 0.2981 / std::sqrt(n));
}

TEST(RandomStream, normal_moments_and_neighbours) {
  const RandomStream stream(3, Purpose::initialisation, 1);
  double sum = 0, squares = 0, fourth = 0, neighbours = 0, before = 0;
  constexpr int n = 200000;
  for (std::uint64_t i = 0; i < n; ++i) {
    const double x = stream.normal(i);
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    neighbours += x * before;
    before = x;
  }
  const double root = std::sqrt(n);
  EXPECT_NEAR(sum / n, 0.0, 5 / root);
  EXPECT_NEAR(squares / n, 1.0, 5 * 1.4143 / root);
  EXPECT_NEAR(fourth / n, 3.0, 5 * 9.8 / root);
  EXPECT_NEAR(neighbours / n, 0.0, 5 / root);
}

TEST(RandomStream, below_is_even_and_in_range) {
  const RandomStream stream(4, Purpose::data, 1);
  std::vector<int> counts(7);
  for (std::uint64_t i = 0; i < 70000; ++i) ++counts.at(stream.below(i, 7));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 5 * 93);
  EXPECT_EQ(stream.below(3, 1), 0u);
  EXPECT_THROW(stream.below(0, 0), InternalError);
}

/// With a bound of 3/4 of 2^64 a quarter of the words is refused; taking them would make the first third of the range
/// twice as likely as the others.
TEST(RandomStream, below_refuses_incomplete_sets) {
  const RandomStream stream(5, Purpose::data, 1);
  const std::uint64_t bound = std::uint64_t{3} << 62;
  std::array<int, 3> thirds{};
  for (std::uint64_t i = 0; i < 30000; ++i) ++thirds.at(stream.below(i, bound) >> 62);
  for (const int count : thirds) EXPECT_NEAR(count, 10000, 5 * 82);
  EXPECT_LT(stream.below(0, ~std::uint64_t{0}), ~std::uint64_t{0});
}

TEST(RandomStream, any_order_gives_the_same) {
  const RandomStream stream(6, Purpose::order, 2);
  std::vector<double> forward, backward;
  for (std::uint64_t i = 0; i < 100; ++i) forward.push_back(stream.normal(i) + stream.uniform(i));
  for (std::uint64_t i = 100; i-- > 0;) backward.push_back(stream.normal(i) + stream.uniform(i));
  EXPECT_TRUE(std::equal(forward.begin(), forward.end(), backward.rbegin()));
}

TEST(Draws, shuffle_is_a_permutation_and_even) {
  std::array<std::array<int, 4>, 4> counts{};
  for (std::uint64_t round = 0; round < 24000; ++round) {
    std::vector<std::size_t> items(4);
    std::iota(items.begin(), items.end(), 0);
    Draws draws(7, Purpose::order, round);
    draws.shuffle(std::span(items));
    for (std::size_t i = 0; i < 4; ++i) ++counts[i].at(items[i]);
    std::sort(items.begin(), items.end());
    EXPECT_EQ(items, (std::vector<std::size_t>{0, 1, 2, 3}));
  }
  for (const auto& row : counts) {
    for (const int count : row) EXPECT_NEAR(count, 6000, 5 * 67);
  }
}

TEST(Draws, takes_the_stream_in_order) {
  const RandomStream stream(8, Purpose::data, 3);
  Draws draws(8, Purpose::data, 3);
  EXPECT_EQ(draws.below(10), stream.below(0, 10));
  EXPECT_EQ(draws.uniform(), stream.uniform(1));
  EXPECT_EQ(draws.normal(), stream.normal(2));
}

}  // namespace
}  // namespace phasor
