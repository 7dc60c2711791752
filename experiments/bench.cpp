#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <vector>

#include "core/ops/gemm.h"
#include "experiments/cost.h"
#include "experiments/data.h"
#include "experiments/trainer.h"
#include "experiments/trial.h"

namespace phasor {

namespace {

using Clock = std::chrono::steady_clock;

/// GFLOP/s of 1024^3 f32 products, one on every thread at the same time.
double gemm_peak(ThreadPool& pool, std::vector<std::vector<float>>& memory) {
  constexpr std::int64_t n = 1024;
  const auto threads = pool.threads();
  const auto start = Clock::now();
  pool.run(threads, [&](std::int64_t i, std::int64_t) {
    float* a = memory[static_cast<std::size_t>(i)].data();
    gemm(false, false, n, n, n, 1.0f, a, n, a + n * n, n, 0.0f, a + 2 * n * n, n);
  });
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return 2.0 * static_cast<double>(n * n * n) * static_cast<double>(threads) / seconds / 1e9;
}

/// GB/s of a[i] = b[i] + s c[i] over arrays that no cache holds, one set on every thread: two read, one written.
double memory_speed(ThreadPool& pool, std::vector<std::vector<float>>& memory) {
  const auto threads = pool.threads();
  const auto start = Clock::now();
  pool.run(threads, [&](std::int64_t i, std::int64_t) {
    std::vector<float>& all = memory[static_cast<std::size_t>(i)];
    const std::size_t size = all.size() / 3;
    float* a = all.data();
    const float *b = a + size, *c = b + size;
    for (std::size_t k = 0; k < size; ++k) a[k] = b[k] + 0.5f * c[k];
  });
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const std::size_t elements = memory.front().size() / 3 * 3;
  return static_cast<double>(elements * sizeof(float)) * static_cast<double>(threads) / seconds / 1e9;
}

/// Two batches of rows at most: what an evaluation takes per token does not depend on how many there are.
std::vector<EvaluationData> some_evaluation_rows(const ExperimentSpec& spec, const Task& task) {
  std::vector<EvaluationData> all;
  for (Slice slice : task.slices(Split::valid)) {
    slice.rows = std::min(slice.rows, 2 * spec.train.batch);
    all.push_back(make_evaluation_data(task, slice, static_cast<std::uint64_t>(spec.seed)));
  }
  return all;
}

}  // namespace

BenchResult bench_trial(const ExperimentSpec& spec, Device* device, std::int64_t warmup, std::int64_t steps) {
  Trainer trainer(spec, device);
  BenchResult result;
  result.parameters = trainer.parameters().total();
  result.least_step_bytes = count_cost(spec).least_step_bytes;
  // Three arrays of 1024^2 for a product, three of 64 MB for the way to memory.
  std::vector<std::vector<float>> memory(static_cast<std::size_t>(spec.run.threads), std::vector<float>(3 << 24, 0.5f));
  const std::vector<EvaluationData> valid = some_evaluation_rows(spec, trainer.task());
  for (const EvaluationData& data : valid) result.tokens_per_evaluation += data.rows.count * data.rows.tokens;
  const auto evaluate = [&] {
    for (const EvaluationData& data : valid) trainer.evaluate(data);
  };
  for (std::int64_t i = 0; i < warmup; ++i) trainer.step();
  const std::int64_t before = trainer.tokens_seen();
  gemm_peak(trainer.pool(), memory);
  memory_speed(trainer.pool(), memory);
  evaluate();
  const std::int64_t blocks = trainer.system_blocks();
  // Timed without the profile, which costs a clock reading per kernel; then the same number of steps with it. A step is timed
  // right after another one, as in training: what is measured in between leaves the caches to itself.
  for (std::int64_t i = 0; i < steps; ++i) {
    result.peak_gflops.push_back(gemm_peak(trainer.pool(), memory));
    trainer.step();
    const auto start = Clock::now();
    trainer.step();
    result.step_seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  for (std::int64_t i = 0; i < steps; ++i) {
    result.copy_gbytes.push_back(memory_speed(trainer.pool(), memory));
    if (result.tokens_per_evaluation == 0) continue;
    evaluate();
    const auto begin = Clock::now();
    evaluate();
    result.evaluate_seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  result.blocks_taken = trainer.system_blocks() - blocks;
  result.tokens_per_step = (trainer.tokens_seen() - before) / (2 * steps);
  trainer.profile(true);
  for (std::int64_t i = 0; i < steps; ++i) trainer.step();
  result.profile = trainer.collected();
  return result;
}

std::vector<std::vector<double>> bench_in_turn(const std::deque<ExperimentSpec>& specs, const std::vector<Device*>& devices,
                                               std::int64_t warmup, std::int64_t rounds) {
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (std::size_t i = 0; i < specs.size(); ++i) trainers.push_back(std::make_unique<Trainer>(specs[i], devices[i]));
  for (const auto& trainer : trainers)
    for (std::int64_t i = 0; i < warmup; ++i) trainer->step();
  std::vector<std::vector<double>> seconds(specs.size());
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < specs.size(); ++i) {  // every round starts with another one
      const std::size_t at = (static_cast<std::size_t>(round) + i) % specs.size();
      trainers[at]->step();
      const auto start = Clock::now();
      trainers[at]->step();
      seconds[at].push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
  }
  return seconds;
}

double measure_peak(double seconds) {
  ThreadPool pool(1);
  std::vector<std::vector<float>> memory(1, std::vector<float>(3 << 20, 0.5f));
  std::vector<double> speeds;
  for (const auto start = Clock::now(); speeds.empty() || std::chrono::duration<double>(Clock::now() - start).count() < seconds;)
    speeds.push_back(gemm_peak(pool, memory));
  std::nth_element(speeds.begin(), speeds.begin() + static_cast<std::ptrdiff_t>(speeds.size() / 2), speeds.end());
  return speeds[speeds.size() / 2];
}

}  // namespace phasor
