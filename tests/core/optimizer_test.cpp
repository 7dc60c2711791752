#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

#include "core/optim/adamw.h"

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

}  // namespace
}  // namespace phasor
