// Every golden file once more on the emulated device: whole layers, models, decoding and optimisers through the kernels of
// cuda.cu, at the tolerances of the processor. Both orders of threads and blocks must give the same bits.

#include <gtest/gtest.h>
#include <map>
#include <set>

#include "core/ops/gemm.h"
#include "tests/cuda/emulated_device.h"
#include "tests/golden/trials.h"

namespace phasor::golden {
namespace {

/// Units that a device has nothing to do for, and why.
const std::map<std::string, std::string> without_device = {
    {"lr_schedule", "rates are arithmetic of the host in double"},
    {"mlp_size", "widths are arithmetic of the host on whole numbers"},
};

std::vector<Trial> trials_of_device() {
  std::vector<Trial> all = trials();
  std::erase_if(all, [](const Trial& trial) { return without_device.contains(unit_of(trial.file)); });
  return all;
}

class CudaGolden : public testing::TestWithParam<Trial> {};

std::vector<Results> run_on(EmulatedDevice& device, unsigned order, const GoldenFile& file, Dtype dtype) {
  device.set_order(order);
  std::vector<Results> all = units().at(file.unit).run(file, {dtype, nullptr, false, &device});
  device.set_order(0);
  return all;
}

void expect_same(const std::string& what, const Group& upwards, const Group& downwards) {
  ASSERT_EQ(upwards.size(), downwards.size()) << what;
  for (const auto& [name, numbers] : upwards)
    EXPECT_EQ(numbers.values, downwards.at(name).values) << what << " " << name << ": other bits in the other order";
}

TEST_P(CudaGolden, AgreesInBothOrders) {
  const Trial& trial = GetParam();
  if (!trial.dtype && !is_selection()) FAIL() << "the harness does not know the unit " << unit_of(trial.file);
  if (!trial.dtype) GTEST_SKIP() << "the harness does not know the unit " << unit_of(trial.file);
  use_one_thread_for_gemm();
  const GoldenFile file = load(trial.file);
  if (const Unit& unit = units().at(file.unit); unit.missing)
    if (const auto reason = unit.missing(file)) GTEST_SKIP() << trial.file << ": " << *reason;

  EmulatedDevice device;
  if (*trial.dtype == Dtype::f64) device.leave_open();  // the host is watched in f32
  const std::vector<Results> upwards = run_on(device, 0, file, *trial.dtype);
  EXPECT_GT(device.launches(), 0) << "the unit does not run on the device that it is given";
  for (const Results& results : upwards)
    for (const std::string& fault : compare(file, results, tolerance_of(file, *trial.dtype)).faults)
      ADD_FAILURE() << fault;
  device.leave_open();  // the host has been watched
  const std::vector<Results> downwards = run_on(device, 1, file, *trial.dtype);
  ASSERT_EQ(upwards.size(), downwards.size());
  for (std::size_t i = 0; i < upwards.size(); ++i) {
    expect_same("output", upwards[i].outputs, downwards[i].outputs);
    expect_same("gradient of", upwards[i].grads, downwards[i].grads);
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CudaGolden);
INSTANTIATE_TEST_SUITE_P(, CudaGolden, testing::ValuesIn(trials_of_device()),
                         [](const testing::TestParamInfo<Trial>& at) { return name_of_trial(at.param); });

// All but those of the table above: a new file is run here as on the processor, in both precisions.
TEST(CudaGoldenFolder, EveryCaseWithKernelsIsRun) {
  std::multiset<std::string> expected, run;
  for (const std::string& name : golden_names(golden_folder())) {
    const auto unit = units().find(unit_of(name));
    if (unit == units().end()) continue;  // a failure of its own
    EXPECT_EQ(unit->second.kernels, !without_device.contains(unit->first)) << unit->first;
    if (unit->second.kernels) expected.insert({name + "_f64", name + "_f32"});
  }
  for (const Trial& trial : trials_of_device())
    if (trial.dtype) run.insert(name_of_trial(trial));
  EXPECT_EQ(run, expected);
}

}  // namespace
}  // namespace phasor::golden
