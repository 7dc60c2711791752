#include <algorithm>
#include <chrono>
#include <vector>

#include "core/ops/gemm.h"
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
  pool.run(threads, [&](std::int64_t i) {
    float* a = memory[static_cast<std::size_t>(i)].data();
    gemm(false, false, n, n, n, 1.0f, a, n, a + n * n, n, 0.0f, a + 2 * n * n, n);
  });
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return 2.0 * static_cast<double>(n * n * n) * static_cast<double>(threads) / seconds / 1e9;
}

}  // namespace

BenchResult bench_trial(const ExperimentSpec& spec, std::int64_t warmup, std::int64_t steps) {
  Trainer trainer(spec);
  BenchResult result;
  result.parameters = trainer.parameters().total();
  std::vector<std::vector<float>> memory(static_cast<std::size_t>(spec.run.threads), std::vector<float>(3 << 20, 0.5f));
  for (std::int64_t i = 0; i < warmup; ++i) trainer.step();
  const std::int64_t before = trainer.tokens_seen();
  gemm_peak(trainer.pool(), memory);
  // Timed without the profile, which costs a clock reading per kernel; then the same number of steps with it.
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto start = Clock::now();
    trainer.step();
    result.step_seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    result.peak_gflops.push_back(gemm_peak(trainer.pool(), memory));
  }
  result.tokens_per_step = (trainer.tokens_seen() - before) / steps;
  trainer.profile(true);
  for (std::int64_t i = 0; i < steps; ++i) trainer.step();
  result.profile = trainer.collected();
  for (const Profile::Entry& entry : result.profile.entries()) result.matrix_flops_per_step += entry.flops;
  result.matrix_flops_per_step /= static_cast<double>(steps);
  return result;
}

}  // namespace phasor
