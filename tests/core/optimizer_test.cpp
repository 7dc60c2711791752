#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "core/optim/adamw.h"
#include "core/optim/kernel.h"
#include "core/optim/sgd.h"

// An update works piece by piece: the bits depend neither on the order of the pieces nor on who does them.

namespace phasor {
namespace {

struct Updated {
  ParameterStore store;
  StepReport report;
  std::vector<float> values() const { return {store.flat().as<float>(), store.flat().as<float>() + store.flat_size()}; }
};

/// A frozen table between trained parameters, more than one piece, two that do not decay.
void declare(ParameterStore& store) {
  const ParameterScope scope(store, "", 0.02);
  scope.weight("first.weight", 300, 200);
  scope.add("table", {50, 10}, Init::normal(1.0), true);
  scope.weight("second.weight", 70, 11);
  scope.zeros("second.bias", {70});
  store.allocate(Dtype::f32);
  store.initialise(3);
}

float slope(std::int64_t lane, std::int64_t i) {
  return static_cast<float>(std::sin(0.37 * static_cast<double>(i) + 1.7 * static_cast<double>(lane)));
}

void update(Updated& to, std::int64_t lanes, Optimizer::Parallel parallel) {
  declare(to.store);
  AdamWOptions options;
  options.decay.weight_decay = 0.1;
  options.decay.clip = 1.0;
  AdamW adamw(options, to.store);
  Arena arena;
  std::vector<Tensor> gradients;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    gradients.emplace_back(arena, Dtype::f32, Shape{to.store.flat_size()});
    for (std::int64_t i = 0; i < to.store.flat_size(); ++i) gradients.back().as<float>()[i] = slope(lane, i);
  }
  for (int step = 0; step < 3; ++step) {
    const std::vector<float> first(gradients[0].as<float>(), gradients[0].as<float>() + to.store.flat_size());
    to.report = adamw.step(gradients, 1e-2, parallel);
    std::copy(first.begin(), first.end(), gradients[0].as<float>());
  }
}

constexpr auto in_order = [](std::int64_t count, FunctionRef<void(std::int64_t, const Stream&)> work) {
  for (std::int64_t i = 0; i < count; ++i) work(i, Stream{});
};
constexpr auto backwards = [](std::int64_t count, FunctionRef<void(std::int64_t, const Stream&)> work) {
  ASSERT_GT(count, 3);
  for (std::int64_t i = count; i-- > 0;) work(i, Stream{});
};
constexpr auto on_threads = [](std::int64_t count, FunctionRef<void(std::int64_t, const Stream&)> work) {
  std::thread odd([&] {
    for (std::int64_t i = 1; i < count; i += 2) work(i, Stream{});
  });
  for (std::int64_t i = 0; i < count; i += 2) work(i, Stream{});
  odd.join();
};

TEST(OptimizerTest, PiecesInAnyOrderGiveTheSameBits) {
  Updated one, two, three;
  update(one, 3, in_order);
  update(two, 3, backwards);
  update(three, 3, on_threads);
  EXPECT_EQ(one.values(), two.values());
  EXPECT_EQ(one.values(), three.values());
  EXPECT_EQ(one.report.grad_norm, two.report.grad_norm);
  EXPECT_EQ(one.report.grad_norm, three.report.grad_norm);
}

TEST(OptimizerTest, GradientsAreAddedUpAndFrozenOnesDoNotCount) {
  Updated updated;
  update(updated, 3, in_order);
  double square = 0.0;
  for (const ParameterEntry& entry : updated.store.entries()) {
    const float* value = updated.store.value(entry).as<float>();
    for (std::int64_t i = 0; i < entry.count() && !entry.frozen; ++i) {
      const std::int64_t at = entry.offset + i;
      square += std::pow(static_cast<double>(slope(0, at) + slope(1, at) + slope(2, at)), 2);
    }
    if (!entry.frozen) continue;
    Updated fresh;
    declare(fresh.store);
    for (std::int64_t i = 0; i < entry.count(); ++i) ASSERT_EQ(value[i], fresh.values()[static_cast<std::size_t>(entry.offset + i)]);
  }
  EXPECT_NEAR(updated.report.grad_norm / std::sqrt(square), 1.0, 1e-6);
}

/// The nearest number with 8 bits of mantissa, ties to the even one, by arithmetic.
double nearest_bf16(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);  // in [1/2, 1)
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
}

template <class T>
std::vector<T> rounded(std::vector<T> values) {
  const Dtype type = sizeof(T) == 4 ? Dtype::f32 : Dtype::f64;
  const RoundBf16 inner{{values.data(), 0}, 1, static_cast<std::int64_t>(values.size()) - 2};
  launch(Stream{type, nullptr}, round_bf16, inner, {0.0, 0});
  return values;
}

template <class T>
void expect_nearest() {
  std::vector<T> values(4002);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double wave = std::sin(0.7 * static_cast<double>(i));
    values[i] = static_cast<T>(wave * std::exp2(static_cast<double>(i % 121) - 60.0));
  }
  // Ties: half a unit above an even and above an odd number; and the carry into the next power of two.
  values[1] = T(1.00390625), values[2] = T(1.01171875), values[3] = T(-1.00390625), values[4] = T(1.99999);
  const std::vector<T> got = rounded(values);
  EXPECT_EQ(got.front(), values.front());  // outside the part
  EXPECT_EQ(got.back(), values.back());
  for (std::size_t i = 1; i + 1 < values.size(); ++i) ASSERT_EQ(static_cast<double>(got[i]), nearest_bf16(static_cast<double>(values[i]))) << i;
  EXPECT_EQ(got[1], T(1));
  EXPECT_EQ(got[2], T(1.015625));
  EXPECT_EQ(got[4], T(2));
}

TEST(Bf16, IsTheNearestTiesToEven) {
  expect_nearest<float>();
  expect_nearest<double>();
  constexpr float infinity = std::numeric_limits<float>::infinity(), largest = std::numeric_limits<float>::max();
  const auto odd_nan = std::bit_cast<float>(0x7f800001u), full_nan = std::bit_cast<float>(0xffffffffu);
  const std::vector<float> got = rounded<float>({0.0f, infinity, -infinity, largest, -0.0f, 0.0f, odd_nan, full_nan, 0.0f});
  EXPECT_EQ(got[1], infinity);
  EXPECT_EQ(got[2], -infinity);
  EXPECT_EQ(got[3], infinity);
  EXPECT_TRUE(std::signbit(got[4]));
  EXPECT_TRUE(std::isnan(got[6]));
  EXPECT_TRUE(std::isnan(got[7]));
}

/// After every step parameters and memory are what one more rounding leaves alone, and the rounding of what the update
/// makes of rounded ones.
template <class Kind, class Options>
void expect_rounded_steps(const Options& options) {
  ParameterStore store, exact_store;
  declare(store);
  declare(exact_store);
  Kind kept(options, store);
  kept.keep_in_bf16();
  Arena arena;
  const Tensor gradient(arena, Dtype::f32, {store.flat_size()});
  for (int step = 0; step < 3; ++step) {
    Kind exact(options, exact_store);  // from the same state
    exact.resume(step);
    std::copy_n(store.flat().as<float>(), store.flat_size(), exact_store.flat().as<float>());
    for (std::size_t m = 0; m < kept.memory().size(); ++m)
      std::copy_n(kept.memory()[m].second.template as<float>(), store.flat_size(), exact.memory()[m].second.template as<float>());
    for (std::int64_t i = 0; i < gradient.size(); ++i) gradient.as<float>()[i] = slope(step, i);
    kept.step(gradient, 1e-2);
    for (std::int64_t i = 0; i < gradient.size(); ++i) gradient.as<float>()[i] = slope(step, i);
    exact.step(gradient, 1e-2);
    int changed = 0;
    const auto compare = [&](const Tensor& got, const Tensor& want) {
      for (std::int64_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(static_cast<double>(got.as<float>()[i]), nearest_bf16(static_cast<double>(want.as<float>()[i]))) << i;
        changed += got.as<float>()[i] != want.as<float>()[i] ? 1 : 0;
      }
    };
    compare(store.flat(), exact_store.flat());
    for (std::size_t m = 0; m < kept.memory().size(); ++m) compare(kept.memory()[m].second, exact.memory()[m].second);
    EXPECT_GT(changed, 60000);
  }
}

TEST(Bf16, ParametersAndMemoryAreRoundedAfterEveryStep) {
  AdamWOptions adamw;
  adamw.decay.weight_decay = 0.1;
  expect_rounded_steps<AdamW>(adamw);
  SgdOptions sgd;
  sgd.momentum = 0.9;
  expect_rounded_steps<Sgd>(sgd);
}

// A frozen table is rounded once, at the start: the program that this imitates stores it so.
TEST(Bf16, FrozenParametersAreRoundedAtTheStart) {
  Updated exact, kept;
  declare(exact.store);
  declare(kept.store);
  AdamW adamw({}, kept.store);
  adamw.keep_in_bf16();
  const ParameterEntry& table = *kept.store.find("table");
  ASSERT_TRUE(table.frozen);
  for (std::int64_t i = 0; i < table.count(); ++i)
    ASSERT_EQ(static_cast<double>(kept.store.value(table).as<float>()[i]),
              nearest_bf16(static_cast<double>(exact.store.value(table).as<float>()[i])));
}

}  // namespace
}  // namespace phasor
