// Every golden file, in double and in single precision, and a check that the comparison can fail.

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <tuple>

#include "core/ops/gemm.h"
#include "tests/golden/trials.h"

namespace phasor::golden {

namespace {

/// Worst errors of a run, per unit and precision, shown at the end.
struct Tally {
  int cases = 0, failed = 0;
  double worst = 0.0;
};
std::map<std::string, Tally>& tallies() {
  static std::map<std::string, Tally> all;
  return all;
}

class Summary : public testing::Environment {
 public:
  void TearDown() override {
    if (tallies().size() < 2) return;
    fmt::print("{:<28} {:>6} {:>7}   worst error / admissible\n", "unit", "cases", "failed");
    for (const auto& [unit, tally] : tallies())
      fmt::print("{:<28} {:>6} {:>7}   {:.3g}\n", unit, tally.cases, tally.failed, tally.worst);
  }
};
[[maybe_unused]] const testing::Environment* const summary = testing::AddGlobalTestEnvironment(new Summary);

class Golden : public testing::TestWithParam<Trial> {};

TEST_P(Golden, Agrees) {
  const Trial& trial = GetParam();
  if (!trial.dtype && !is_selection()) FAIL() << trial.file << ": the harness does not know the unit " << unit_of(trial.file);
  if (!trial.dtype) GTEST_SKIP() << trial.file << ": the harness does not know the unit " << unit_of(trial.file);
  use_one_thread_for_gemm();
  const GoldenFile file = load(trial.file);
  const Unit& unit = units().at(file.unit);
  if (unit.missing)
    if (const auto reason = unit.missing(file)) GTEST_SKIP() << trial.file << ": " << *reason;

  Tally& tally = tallies()[file.unit + " " + name_of(*trial.dtype)];
  ++tally.cases;
  ++tally.failed;  // taken back at the end
  for (const Results& results : unit.run(file, Stream{*trial.dtype})) {
    const Verdict verdict = compare(file, results, tolerance_of(file, *trial.dtype));
    tally.worst = std::max(tally.worst, verdict.worst);
    for (const std::string& fault : verdict.faults) ADD_FAILURE() << fault;
  }
  tally.failed -= HasFailure() ? 0 : 1;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Golden);
INSTANTIATE_TEST_SUITE_P(, Golden, testing::ValuesIn(trials()),
                         [](const testing::TestParamInfo<Trial>& at) { return name_of_trial(at.param); });

TEST(GoldenFolder, HoldsCasesOfEveryUnit) {
  std::set<std::string> there;
  for (const std::string& name : golden_names(golden_folder())) there.insert(unit_of(name));
  ASSERT_FALSE(there.empty()) << "no files in " << golden_folder();
  if (is_selection()) return;
  for (const auto& [name, unit] : units()) EXPECT_TRUE(there.contains(name)) << name;
}

/// Files from every corner of the harness: an op, a state, an encoding, a layer, decoding, a model, an optimiser.
const char* const planted[] = {"rms_norm__affine1",
                               "short_conv__silu_bias_state0",
                               "selective_rope__cached_everything",
                               "softmax_attention_bias__gqa_decay_alibi_window",
                               "layer_gla__selective_full",
                               "decode_gla__selective_full",
                               "batch_shards__rows",
                               "model__gla_selective_full",
                               "autoencoder__shorter_odd",
                               "adamw__decay_clip"};
class PlantedFault : public testing::TestWithParam<std::tuple<const char*, Dtype>> {};

bool blames(const Verdict& verdict, const std::string& what) {
  for (const std::string& fault : verdict.faults)
    if (fault.find(what) != std::string::npos) return true;
  return false;
}

/// Moves one expected value of every tensor by three times what is admissible; each has to be noticed by name.
void plant(GoldenFile file, Group GoldenFile::*group, const std::string& label, double tolerance,
           const Results& results, const Tolerance& both) {
  double scale = 0.0;
  for (const auto& [name, numbers] : file.*group)
    for (const double value : numbers.values) scale = std::max(scale, std::abs(value));
  for (auto& [name, numbers] : file.*group) {
    if (name.find("_conv_at_") != std::string::npos) continue;  // their first column is not compared
    double top = 0.0;
    for (const double value : numbers.values) top = std::max(top, std::abs(value));
    double& place = numbers.values[numbers.values.size() / 2];
    const double true_value = place;
    place += (place > 0.0 ? -3.0 : 3.0) * tolerance * std::max(top, 1e-3 * scale);
    EXPECT_TRUE(blames(compare(file, results, both), label + " " + name)) << label << " " << name;
    place = true_value;
  }
}

TEST_P(PlantedFault, IsFound) {
  use_one_thread_for_gemm();
  const auto& [name, dtype] = GetParam();
  const std::vector<std::string> there = golden_names(golden_folder());
  if (std::find(there.begin(), there.end(), name) == there.end()) {
    ASSERT_TRUE(is_selection()) << name << " is not in " << golden_folder();
    GTEST_SKIP() << name << " is not in " << golden_folder();
  }
  const GoldenFile file = load(name);
  const Tolerance tolerance = tolerance_of(file, dtype);
  for (const Results& results : units().at(file.unit).run(file, Stream{dtype})) {
    ASSERT_TRUE(compare(file, results, tolerance).faults.empty());
    plant(file, &GoldenFile::outputs, "output", tolerance.outputs, results, tolerance);
    plant(file, &GoldenFile::grads, "gradient of", tolerance.grads, results, tolerance);

    for (const auto& [output, numbers] : file.outputs) {
      Results fewer = results;
      fewer.outputs.erase(output);
      EXPECT_TRUE(blames(compare(file, fewer, tolerance), output + ": not computed")) << output;
    }
    for (const auto& [gradient, numbers] : file.grads) {
      Results fewer = results;
      fewer.grads.erase(gradient);
      EXPECT_TRUE(blames(compare(file, fewer, tolerance), gradient + ": not computed")) << gradient;
    }
    Results broken = results;
    broken.grads["trained_by_mistake"] = {{1}, {0.0}};
    EXPECT_TRUE(blames(compare(file, broken, tolerance), "trained_by_mistake: computed"));
    broken = results;
    broken.outputs.begin()->second.values.back() = std::nan("");
    EXPECT_FALSE(compare(file, broken, tolerance).faults.empty());
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PlantedFault);
INSTANTIATE_TEST_SUITE_P(, PlantedFault,
                         testing::Combine(testing::ValuesIn(planted), testing::Values(Dtype::f64, Dtype::f32)),
                         [](const testing::TestParamInfo<std::tuple<const char*, Dtype>>& at) {
                           return std::string(std::get<0>(at.param)) + "_" + name_of(std::get<1>(at.param));
                         });

}  // namespace
}  // namespace phasor::golden
