#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "core/graph/tape.h"
#include "core/ops/running_phase/running_phase.h"
#include "tests/cuda/emulated_device.h"

// Phases must not drift on a device either (L9), in segments as on the processor in one run.

namespace phasor::ops {
namespace {

constexpr std::int64_t steps = 65'536, planes = 2;

TEST(CudaPhase, RunningSumOfSixtyFiveThousandSteps) {
  std::vector<float> increments, temperature{1.0f, 0.1f};
  for (std::int64_t i = 0; i < steps * planes; ++i)
    increments.push_back(0.5f + 0.1f * std::sin(static_cast<float>(i * i % 1009)));
  EmulatedDevice device;
  Arena arena(&device);
  Tape tape(arena, {Dtype::f32, nullptr, false, &device}, false);
  const Tensor f = tape.empty({1, steps, 1, planes}), tau = tape.empty({planes});
  device.copy_in(f.data(), increments.data(), increments.size() * sizeof(float));
  device.copy_in(tau.data(), temperature.data(), temperature.size() * sizeof(float));
  const Phase out = running_phase(tape, f, tau, {}, true);
  std::vector<float> angle(increments.size());
  device.copy_out(angle.data(), out.angle.data(), angle.size() * sizeof(float));
  long double sums[planes] = {};
  double worst = 0.0;
  for (std::size_t i = 0; i < angle.size(); ++i) {
    long double& sum = sums[i % planes];
    sum += static_cast<long double>(increments[i]);
    const long double apart =
        sum * static_cast<long double>(temperature[i % planes]) - static_cast<long double>(angle[i]);
    worst =
        std::max(worst, std::abs(static_cast<double>(std::remainder(apart, 6.28318530717958647692528676655900577L))));
  }
  EXPECT_LT(worst, 5e-7);  // rounding the angle to f32 is all there is; 1e-3 is asked for
  double last[planes];
  device.copy_out(last, out.state.data(), sizeof last);
  for (std::size_t i = 0; i < planes; ++i) EXPECT_NEAR(last[i], static_cast<double>(sums[i]), 1e-9);
}

}  // namespace
}  // namespace phasor::ops
