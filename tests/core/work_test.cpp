// What launches say they have to do: bytes of operands of known shapes, on a stream that computes nothing.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>

#include "core/graph/tape.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/embedding/embedding.h"
#include "core/ops/gather_rows/gather_rows.h"
#include "core/ops/linear/linear.h"

namespace phasor {
namespace {

struct NoArgs {};
template <class... Last>
concept Launches = requires(Stream stream, Kernel<NoArgs> kernel, Last... last) { launch(stream, kernel, NoArgs{}, last...); };

// A kernel that says nothing, or not all, does not compile.
static_assert(Launches<Work> && !Launches<> && !Launches<double>);
static_assert(!std::is_default_constructible_v<Work> && !std::is_constructible_v<Work, double>);

class Counted {
 public:
  explicit Counted(Dtype dtype = Dtype::f32) : tape(arena_, {dtype, &profile_, true}, true) {}

  Tensor leaf(Shape shape) { return tape.variable(tape.empty(shape)); }
  /// Starts from a gradient of `y`, which is no launch.
  void backward(const Tensor& y) { tape.backward(std::array{std::pair{y, tape.empty(y.shape())}}); }
  /// Of a kernel, or zeros when it did not run.
  Profile::Entry of(std::string_view name) const {
    for (const Profile::Entry& entry : profile_.entries())
      if (name == entry.name) return entry;
    return {"", 0.0, 0.0, 0, 0};
  }
  Profile::Entry all() const { return profile_.total(); }

 private:
  Arena arena_;
  Profile profile_;

 public:
  Tape tape;
};

TEST(Work, ALinearMapMovesEveryOperandOnce) {
  Counted counted;
  const Tensor x = counted.leaf({2, 3, 4}), weight = counted.leaf({5, 4}), bias = counted.leaf({5});
  const Tensor y = ops::linear(counted.tape, x, weight, bias);
  EXPECT_EQ(counted.of("linear.forward").bytes, 4 * (24 + 20 + 5 + 30));
  EXPECT_EQ(counted.of("linear.forward").flops, 2.0 * 6 * 4 * 5);
  counted.backward(y);
  // Reads dy, x and weight; writes dx and dweight; adds to the zeros of dbias.
  EXPECT_EQ(counted.of("linear.backward").bytes, 4 * (30 + 24 + 20 + 24 + 20 + 2 * 5));
  EXPECT_EQ(counted.of("linear.backward").flops, 4.0 * 6 * 4 * 5);
  EXPECT_EQ(counted.of("zero").bytes, 4 * 5);
  EXPECT_EQ(counted.all().calls, 3);
  EXPECT_EQ(counted.all().seconds, 0.0);
}

TEST(Work, WhatIsAbsentOrNotWantedMovesNothing) {
  Counted counted(Dtype::f64);
  const Tensor x = counted.tape.empty({6, 4}), weight = counted.leaf({5, 4});
  const Tensor y = ops::linear(counted.tape, x, weight, {});
  EXPECT_EQ(counted.of("linear.forward").bytes, 8 * (24 + 20 + 30));
  counted.backward(y);
  EXPECT_EQ(counted.of("linear.backward").bytes, 8 * (30 + 24 + 20));
}

TEST(Work, AGradientThatIsAddedToCountsTwice) {
  Counted counted;
  const Tensor x = counted.leaf({3, 7}), a = counted.leaf({3, 7}), b = counted.leaf({3, 7});
  const Tensor y = ops::add(counted.tape, ops::mul(counted.tape, x, a), ops::mul(counted.tape, x, b));
  counted.backward(y);
  // Four products of gradients, each of two operands and a result; the second one of x adds to the first.
  EXPECT_EQ(counted.of("mul.backward").calls, 4);
  EXPECT_EQ(counted.of("mul.backward").bytes, 4 * 21 * (4 * 3 + 1));
}

TEST(Work, AGatherCountsTheRowsItTouches) {
  Counted counted;
  const Tensor ids = counted.tape.empty({2, 3}, Dtype::i32), few = counted.leaf({4, 8}), many = counted.leaf({100, 8});
  std::fill_n(ids.as<std::int32_t>(), 6, 0);
  const Tensor x = ops::embedding(counted.tape, ids, many);
  EXPECT_EQ(counted.of("embedding.forward").bytes, 4 * (6 + 48 + 48));
  ops::embedding(counted.tape, ids, few);
  EXPECT_EQ(counted.of("embedding.forward").bytes, 4 * (6 + 48 + 48) + 4 * (6 + 48 + 32));
  const Tensor index = counted.tape.empty({2}, Dtype::i32);
  std::fill_n(index.as<std::int32_t>(), 2, 0);
  counted.backward(ops::gather_rows(counted.tape, x, index));
  EXPECT_EQ(counted.of("gather_rows.forward").bytes, 4 * (2 + 16 + 16));
  EXPECT_EQ(counted.of("gather_rows.backward").bytes, 4 * (2 + 16 + 2 * 16));
  EXPECT_EQ(counted.of("embedding.backward").bytes, 4 * (6 + 48 + 2 * 48));
  EXPECT_EQ(counted.of("zero").bytes, 4 * (48 + 800));
}

TEST(Work, ProfilesAddUp) {
  Profile one, sum;
  one.add({"a", 0.5, 3.0, 10, 2});
  sum.add({"a", 0.25, 1.0, 1, 1});
  sum.merge(one, 3);
  EXPECT_EQ(sum.entries().size(), 1u);
  EXPECT_EQ(sum.total().seconds, 1.75);
  EXPECT_EQ(sum.total().flops, 10.0);
  EXPECT_EQ(sum.total().bytes, 31);
  EXPECT_EQ(sum.total().calls, 7);
}

}  // namespace
}  // namespace phasor
