#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "core/graph/tape.h"

namespace phasor {
namespace {

/// y = factor * x, by an op as any room would write it.
Tensor times(Tape& tape, const Tensor& x, double factor) {
  const Tensor y = tape.output(x.shape(), {&x});
  for (std::int64_t r = 0; r < x.rows(); ++r)
    for (std::int64_t i = 0; i < x.width(); ++i) row<double>(y.view(), r)[i] = factor * row<double>(x.view(), r)[i];
  if (!tape.wants(y)) return y;
  tape.record([=](Tape& t) {
    const Tensor dy = t.take(y);
    if (!dy) return;
    const auto dx = t.gradient(x);
    for (std::int64_t r = 0; r < dy.rows(); ++r)
      for (std::int64_t i = 0; i < dy.width(); ++i) {
        double& to = row<double>(dx.tensor.view(), r)[i];
        to = (dx.accumulate ? to : 0.0) + factor * row<double>(dy.view(), r)[i];
      }
  });
  return y;
}

class TapeTest : public testing::Test {
 protected:
  TapeTest() : tape_(arena_, {Dtype::f64, nullptr}, true) { arena_.poison(true); }

  Tensor leaf() {
    Tensor x = tape_.empty({2, 4});
    for (std::int64_t i = 0; i < 8; ++i) x.as<double>()[i] = static_cast<double>(i);
    return tape_.variable(x);
  }
  Tensor ones(const Tensor& like) {
    const Tensor t = tape_.empty(like.shape());
    for (std::int64_t i = 0; i < t.size(); ++i) t.as<double>()[i] = 1.0;
    return t;
  }
  std::vector<double> gradient_of(const Tensor& x) {
    const Tensor g = tape_.leaf_gradient(x);
    return {g.as<double>(), g.as<double>() + g.size()};
  }
  Columns halves(const Tensor& whole) { return tape_.split(whole, std::array<std::int64_t, 2>{1, 3}); }

  Arena arena_;
  Tape tape_;
};

TEST_F(TapeTest, UsesOfOneValueAddUp) {
  const Tensor x = leaf();
  const Tensor a = times(tape_, x, 2.0), b = times(tape_, x, 3.0);
  tape_.backward(std::array{std::pair{a, ones(a)}, std::pair{b, ones(b)}});
  EXPECT_EQ(gradient_of(x), std::vector<double>(8, 5.0));
}

TEST_F(TapeTest, AHandedOverGradientIsNotChangedForOthers) {
  // Both leaves take the same handle; what one adds must not show in the other.
  const Tensor x = leaf(), y = leaf();
  const Tensor shared = ones(x), more = ones(x);
  tape_.record([=](Tape& t) {
    t.add(x, shared);
    t.add(y, shared);
    t.add(x, more);
  });
  tape_.backward({});
  EXPECT_EQ(gradient_of(x), std::vector<double>(8, 2.0));
  EXPECT_EQ(gradient_of(y), std::vector<double>(8, 1.0));
}

TEST_F(TapeTest, ColumnsFillTheGradientOfTheWhole) {
  const Tensor x = leaf();
  const auto parts = halves(times(tape_, x, 1.0));
  const Tensor a = times(tape_, parts[0], 2.0), b = times(tape_, parts[1], 3.0);
  tape_.backward(std::array{std::pair{a, ones(a)}, std::pair{b, ones(b)}});
  EXPECT_EQ(gradient_of(x), (std::vector<double>{2, 3, 3, 3, 2, 3, 3, 3}));
}

TEST_F(TapeTest, AnUnusedColumnHasGradientZero) {
  const Tensor x = leaf();
  const auto parts = halves(times(tape_, x, 1.0));
  const Tensor b = times(tape_, parts[1], 3.0);
  tape_.backward(std::array{std::pair{b, ones(b)}});
  EXPECT_EQ(gradient_of(x), (std::vector<double>{0, 3, 3, 3, 0, 3, 3, 3}));
}

TEST_F(TapeTest, AColumnUsedTwiceAddsUp) {
  const Tensor x = leaf();
  const auto parts = halves(times(tape_, x, 1.0));
  const Tensor a = times(tape_, parts[0], 2.0), b = times(tape_, parts[0], 5.0);
  tape_.backward(std::array{std::pair{a, ones(a)}, std::pair{b, ones(b)}});
  EXPECT_EQ(gradient_of(x), (std::vector<double>{7, 0, 0, 0, 7, 0, 0, 0}));
}

// The whole is used beside its columns: before the split, after it, and after the columns' uses, so that its gradient
// arrives last, in between and first.
TEST_F(TapeTest, TheWholeAndItsColumnsAddUp) {
  for (const int when : {0, 1, 2}) {
    const Tensor x = leaf();
    const Tensor whole = times(tape_, x, 1.0);
    std::vector<std::pair<Tensor, Tensor>> seeds;
    const auto use = [&](const Tensor& value, double factor) {
      const Tensor y = times(tape_, value, factor);
      seeds.emplace_back(y, ones(y));
    };
    if (when == 0) use(whole, 10.0);
    const auto parts = halves(whole);
    if (when == 1) use(whole, 10.0);
    use(parts[1], 3.0);
    if (when == 2) use(whole, 10.0);
    tape_.backward(seeds);
    EXPECT_EQ(gradient_of(x), (std::vector<double>{10, 13, 13, 13, 10, 13, 13, 13})) << when;
    tape_.clear();
  }
}

TEST_F(TapeTest, ASharedGradientOfTheWholeIsNotChangedThroughItsColumns) {
  const Tensor x = leaf(), y = leaf();
  const Tensor whole = times(tape_, x, 1.0);
  const auto parts = halves(whole);
  const Tensor b = times(tape_, parts[1], 3.0);
  const Tensor shared = ones(whole);
  tape_.record([=](Tape& t) {
    t.add(y, shared);
    t.add(whole, shared);
  });
  tape_.backward(std::array{std::pair{b, ones(b)}});
  EXPECT_EQ(gradient_of(x), (std::vector<double>{1, 4, 4, 4, 1, 4, 4, 4}));
  EXPECT_EQ(gradient_of(y), std::vector<double>(8, 1.0));
}

TEST_F(TapeTest, AskingTwiceWhileHoldingIsRefused) {
  const Tensor x = leaf();
  const Tensor y = times(tape_, x, 1.0);
  tape_.record([=](Tape& t) {
    const auto first = t.gradient(x);
    EXPECT_THROW(t.gradient(x), InternalError);
  });
  tape_.backward(std::array{std::pair{y, ones(y)}});
}

TEST_F(TapeTest, AddressesRepeatAfterClear) {
  std::vector<void*> first, second;
  for (auto* seen : {&first, &second}) {
    const Tensor x = leaf();
    const Tensor y = times(tape_, x, 2.0);
    seen->insert(seen->end(), {x.data(), y.data()});
    tape_.clear();
  }
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace phasor
