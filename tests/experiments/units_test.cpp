#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "core/nn/task.h"
#include "experiments/curve.h"
#include "experiments/order.h"
#include "experiments/thread_pool.h"

namespace phasor {
namespace {

TEST(TrainingRow, EveryEpochIsAPermutation) {
  for (const std::int64_t rows : {1, 2, 3, 7, 64, 65, 1000}) {
    for (const std::int64_t epoch : {0, 1, 5}) {
      std::vector<std::int64_t> seen;
      for (std::int64_t i = 0; i < rows; ++i) seen.push_back(training_row(3, epoch * rows + i, rows));
      std::sort(seen.begin(), seen.end());
      std::vector<std::int64_t> all(static_cast<std::size_t>(rows));
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(seen, all) << rows << " rows, epoch " << epoch;
    }
  }
}

TEST(TrainingRow, EpochsAndSeedsHaveOrdersOfTheirOwn) {
  const auto order = [](std::uint64_t seed, std::int64_t epoch) {
    std::vector<std::int64_t> rows;
    for (std::int64_t i = 0; i < 200; ++i) rows.push_back(training_row(seed, epoch * 200 + i, 200));
    return rows;
  };
  EXPECT_NE(order(0, 0), order(0, 1));
  EXPECT_NE(order(0, 0), order(1, 0));
  EXPECT_EQ(order(4, 2), order(4, 2));
}

TEST(TrainingRow, PlacesAreUniform) {
  // Where row 0 stands, over many seeds: mean of a uniform place within four standard errors.
  constexpr std::int64_t rows = 50, seeds = 2000;
  double sum = 0.0;
  for (std::int64_t seed = 0; seed < seeds; ++seed)
    for (std::int64_t i = 0; i < rows; ++i)
      if (training_row(static_cast<std::uint64_t>(seed), i, rows) == 0) sum += static_cast<double>(i);
  EXPECT_NEAR(sum / seeds, 24.5, 4 * 14.4 / 44.7);
}

TEST(BatchSource, OneSliceIsOneStream) {
  const std::vector<Slice> slices = {{Split::train, 4, 100}};
  for (const std::int64_t step : {0, 1, 9, 10, 57}) {
    const BatchSource source = batch_source(3, step, slices, 7, false);
    EXPECT_EQ(source.slice, 0u);
    EXPECT_EQ(source.position, 7 * step);
  }
}

TEST(BatchSource, AnEpochHasEveryBatchOfEverySliceOnce) {
  const std::vector<Slice> slices = {{Split::train, 4, 100}, {Split::train, 8, 25}, {Split::train, 16, 30}};  // 10, 3, 3
  for (const bool curriculum : {false, true}) {
    std::vector<std::size_t> first_epoch, second_epoch;
    std::vector<std::vector<std::int64_t>> places(3);
    for (std::int64_t step = 0; step < 32; ++step) {
      const BatchSource source = batch_source(5, step, slices, 10, curriculum);
      places[source.slice].push_back(source.position);
      (step < 16 ? first_epoch : second_epoch).push_back(source.slice);
    }
    const std::vector<std::int64_t> counts = {20, 6, 6};
    for (std::size_t i = 0; i < 3; ++i) {
      std::vector<std::int64_t>& own = places[i];
      EXPECT_TRUE(!curriculum || std::is_sorted(own.begin(), own.end()));
      std::sort(own.begin(), own.end());
      ASSERT_EQ(static_cast<std::int64_t>(own.size()), counts[i]);
      for (std::int64_t k = 0; k < counts[i]; ++k) EXPECT_EQ(own[static_cast<std::size_t>(k)], 10 * k);
    }
    EXPECT_EQ(std::is_sorted(first_epoch.begin(), first_epoch.end()), curriculum);
    EXPECT_EQ(first_epoch == second_epoch, curriculum) << "mixed epochs have orders of their own";
  }
}

TEST(ThreadPool, RunsEveryPieceOnce) {
  for (const std::int64_t threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 50; ++round) {
      std::vector<std::atomic<int>> counts(17);
      pool.run(17, [&](std::int64_t i, std::int64_t) { counts[static_cast<std::size_t>(i)].fetch_add(1); });
      for (const auto& count : counts) EXPECT_EQ(count.load(), 1);
    }
    pool.run(0, [](std::int64_t, std::int64_t) { FAIL(); });
  }
}

TEST(ThreadPool, ThrowsWhatAPieceThrewAndGoesOn) {
  ThreadPool pool(3);
  EXPECT_THROW(pool.run(8, [](std::int64_t i, std::int64_t) { if (i == 5) throw std::runtime_error("boom"); }), std::runtime_error);
  std::atomic<int> sum{0};
  pool.run(8, [&](std::int64_t, std::int64_t) { sum.fetch_add(1); });
  EXPECT_EQ(sum.load(), 8);
}

TEST(SpikeCounter, CountsNormsFarAboveTheRecentMedian) {
  SpikeCounter counter;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(counter.add(100.0 * i));  // too few steps to judge
  SpikeCounter steady;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(steady.add(1.0 + 0.01 * (i % 7)));
  EXPECT_TRUE(steady.add(6.0));
  EXPECT_FALSE(steady.add(4.9));
  EXPECT_EQ(steady.spikes(), 1);
}

}  // namespace
}  // namespace phasor
