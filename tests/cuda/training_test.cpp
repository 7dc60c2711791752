// Whole trainings on a device, against those of the processor, and what a captured step promises.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/cuda/devices.h"
#include "core/graph/transfer.h"
#include "experiments/checkpoint.h"
#include "experiments/trainer.h"
#include "experiments/trial.h"
#include "tests/conformance/layers.h"
#include "tests/cuda/emulated_device.h"
#include "tests/experiments/fixture.h"

namespace phasor {
namespace {

/// That the host leaves its memory alone is seen in the tests of the dropout and of bf16; closing it thousands of times is slow.
class OpenDevice : public EmulatedDevice {
 public:
  OpenDevice() { leave_open(); }
};

/// Counts what would cost time on a real device.
class CountingDevice : public OpenDevice {
 public:
  int taken = 0, copied_in = 0, copied_out = 0, waits = 0, runs = 0, captures = 0, replays = 0;
  void* allocate(std::size_t bytes) override {
    ++taken;
    return EmulatedDevice::allocate(bytes);
  }
  void copy_in(void* to, const void* from, std::size_t bytes) override {
    ++copied_in;
    EmulatedDevice::copy_in(to, from, bytes);
  }
  void copy_out(void* to, const void* from, std::size_t bytes) override {
    ++copied_out;
    EmulatedDevice::copy_out(to, from, bytes);
  }
  void synchronize() override {
    ++waits;
    EmulatedDevice::synchronize();
  }
  void run(const void* kernel, const char* name, Dtype dtype, const void* args) override {
    ++runs;
    EmulatedDevice::run(kernel, name, dtype, args);
  }
  void begin_capture() override {
    ++captures;
    EmulatedDevice::begin_capture();
  }
  void replay(void* captured) override {
    ++replays;
    EmulatedDevice::replay(captured);
  }
};

struct Case {
  const char* name;
  const char* patch;
};

/// Every way of a batch to the model: one stream and two, packed rows, slices of several lengths.
constexpr const char* selective = R"({"train": {"batch": 6, "lanes": 1, "micro_batch": 6}})";
constexpr const char* softmax = R"({"model": {"backbone": {"name": "transformer", "heads": 2}, "encoding": {"name": "rope"}},
                                    "train": {"batch": 6, "lanes": 1, "micro_batch": 6}})";
constexpr const char* alibi = R"({"model": {"backbone": {"name": "transformer", "heads": 2}, "encoding": {"name": "alibi"}},
                                  "train": {"batch": 6, "lanes": 1, "micro_batch": 6}})";
constexpr const char* packed = R"({"task": {"name": "copying", "letters": 4, "separate": true,
  "train": {"rows": 100, "length": 14, "shortest": 1, "longest": 4}, "valid": {"rows": 5, "lengths": [3]}, "test": {"rows": 5, "lengths": [2, 4]}},
  "train": {"batch": 5, "lanes": 2, "micro_batch": 2}})";
constexpr const char* lengths = R"({"task": {"name": "mqar", "vocabulary": 32, "form": "stacked", "passes": 1, "curriculum": true,
  "train": {"rows": [12, 12], "lengths": [4, 6], "pairs": [2, 3]}, "valid": {"rows": [6], "lengths": [4], "pairs": [2]},
  "test": {"rows": [6], "lengths": [6], "pairs": [3]}}, "model": {"embedding": {"kind": "sphere"}, "mlp": {"kind": "identity"}},
  "train": {"batch": 6, "lanes": 1, "micro_batch": 6}})";

Json experiment(const char* patch, const std::string& more) {
  Json base = small_experiment(patch);
  Document over = Document::parse(more, "more");
  over.require_none();
  merge(base, over.value());
  return base;
}

/// An experiment of its own and a trainer in it.
struct Training {
  ExperimentSpec spec{shipped_plugins()};
  std::unique_ptr<Trainer> trainer;
  Training(const char* patch, const std::string& more, Device* device) {
    read_spec(spec, experiment(patch, more));
    trainer = std::make_unique<Trainer>(spec, device);
  }
  std::vector<StepResult> steps(int count) {
    std::vector<StepResult> all;
    for (int i = 0; i < count; ++i) all.push_back(trainer->step());
    return all;
  }
  /// Parameters, element by element.
  std::vector<double> parameters() const {
    Arena memory;
    const Tensor flat = fetched(trainer->device(), trainer->parameters().flat(), memory);
    std::vector<double> values(static_cast<std::size_t>(flat.size()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = flat.dtype() == Dtype::f64 ? flat.as<double>()[i] : static_cast<double>(flat.as<float>()[i]);
    return values;
  }
};

std::string train(const std::string& precision, int steps, const std::string& more = "") {
  return R"({"train": {"precision": ")" + precision + R"(", "steps": )" + std::to_string(steps) + "}" + more + "}";
}

double apart(double a, double b) { return std::abs(a - b) / std::max(1.0, std::abs(b)); }

class DeviceTraining : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Trainings, DeviceTraining,
                         testing::Values(Case{"selective", selective}, Case{"softmax", softmax}, Case{"alibi", alibi}, Case{"packed", packed},
                                         Case{"lengths", lengths}),
                         [](const auto& one) { return std::string(one.param.name); });

/// The largest distance of losses and gradient norms.
double largest_apart(const std::vector<StepResult>& found, const std::vector<StepResult>& expected) {
  double worst = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(found[i].step, expected[i].step);
    EXPECT_EQ(found[i].targets, expected[i].targets);
    EXPECT_EQ(found[i].lr, expected[i].lr);
    worst = std::max({worst, apart(found[i].loss, expected[i].loss), apart(found[i].grad_norm, expected[i].grad_norm)});
  }
  return worst;
}

// The kernels of a device add in other orders than those of the processor. In f64 that is 1e-15 per sum, of which 20 updates
// make less than 1e-9. In f32 rounding grows from step to step, since Adam divides a gradient by its own size; a device may be
// as far from f64 as the processor is, within a small factor.
TEST_P(DeviceTraining, GivesTheLossesOfTheProcessor) {
  constexpr int steps = 20, few = 10;
  OpenDevice first, second;
  Training here(GetParam().patch, train("f64", steps), nullptr), there(GetParam().patch, train("f64", steps), &first);
  const auto exact = here.steps(steps), found = there.steps(steps);
  const double in_f64 = largest_apart(found, exact);
  EXPECT_LE(in_f64, 1e-9);
  EXPECT_NE(found.back().loss, found.front().loss);

  Training rough_here(GetParam().patch, train("f32", steps), nullptr), rough_there(GetParam().patch, train("f32", steps), &second);
  const std::vector<StepResult> beginning(exact.begin(), exact.begin() + few);
  const double of_processor = largest_apart(rough_here.steps(few), beginning);
  const double of_device = largest_apart(rough_there.steps(few), beginning);
  EXPECT_LE(of_device, 5.0 * of_processor + 1e-6);
  std::printf("%s: f64 apart by %.2g; f32 from f64 by %.2g on the processor, %.2g on the device\n", GetParam().name, in_f64,
              of_processor, of_device);
}

TEST_P(DeviceTraining, EvaluatesAndDecodesAsTheProcessor) {
  OpenDevice device;
  Training here(GetParam().patch, train("f64", 3), nullptr), there(GetParam().patch, train("f64", 3), &device);
  here.steps(3);
  there.steps(3);
  for (const Split split : {Split::valid, Split::test})
    for (const Slice& slice : here.trainer->task().slices(split)) {
      const EvaluationData data = make_evaluation_data(here.trainer->task(), slice, 7);
      const SliceResult a = here.trainer->evaluate(data), b = there.trainer->evaluate(data);
      EXPECT_NEAR(b.loss, a.loss, 1e-9);
      EXPECT_EQ(b.token_accuracy, a.token_accuracy);
      EXPECT_EQ(b.sequence_accuracy, a.sequence_accuracy);
      EXPECT_EQ(b.class_accuracy, a.class_accuracy);
      EXPECT_EQ(b.tokens, a.tokens);
      EXPECT_GT(b.tokens, 0);
      EXPECT_EQ(b.rows, a.rows);
      if (here.trainer->task().prompt(slice) == 0) continue;
      const FreeResult c = here.trainer->decode(data), d = there.trainer->decode(data);
      EXPECT_EQ(d.token_accuracy, c.token_accuracy);
      EXPECT_EQ(d.sequence_accuracy, c.sequence_accuracy);
      EXPECT_EQ(d.tokens, c.tokens);
      EXPECT_GT(d.tokens, 0);
    }
}

/// Warm-up and cosine, clipping in some steps, dropout, weight decay.
std::string eventful(const std::string& precision, const std::string& capture, const std::string& optimizer) {
  return train(precision, 12, R"(, "optimizer": {"lr": 0.02, "schedule": {"name": "cosine", "warmup": 0.3, "floor": 0.1}, )" + optimizer +
                                  R"(}, "model": {"embedding": {"dropout": 0.2}}, "run": {"capture": )" + capture + "}");
}

TEST_P(DeviceTraining, ACapturedStepGivesTheBitsOfAnEagerOne) {
  for (const std::string precision : {"f64", "f32"})
    for (const std::string optimizer : {R"("clip": 0.5, "weight_decay": 0.1)", R"("name": "sgd", "momentum": 0.9, "clip": 0.5)"}) {
      if (precision == "f64" && (optimizer.find("sgd") != std::string::npos || GetParam().patch != selective)) continue;
      CountingDevice eager, captured;
      Training a(GetParam().patch, eventful(precision, "false", optimizer), &eager);
      Training b(GetParam().patch, eventful(precision, "true", optimizer), &captured);
      const auto expected = a.steps(12);
      for (int i = 0; i < 12; ++i) b.trainer->start_step();  // nobody waits
      const std::vector<StepResult> found = b.trainer->take_results();
      ASSERT_EQ(found.size(), expected.size());
      const auto clipped = std::count_if(found.begin(), found.end(), [](const StepResult& r) { return r.clipped; });
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].loss, expected[i].loss) << i;
        EXPECT_EQ(found[i].grad_norm, expected[i].grad_norm) << i;
        EXPECT_EQ(found[i].clipped, expected[i].clipped) << i;
        EXPECT_EQ(found[i].lr, expected[i].lr) << i;
      }
      EXPECT_EQ(a.parameters(), b.parameters());
      EXPECT_GT(clipped, 0);
      std::printf("%s %s: %d of 12 steps clipped\n", GetParam().name, precision.c_str(), static_cast<int>(clipped));
      const auto slices = static_cast<int>(b.trainer->task().slices(Split::train).size());
      EXPECT_EQ(captured.captures, slices);
      EXPECT_EQ(captured.replays, 12 - slices);
      EXPECT_EQ(eager.captures + eager.replays, 0);
    }
}

/// Pairs in which every variant of a backbone and of an encoding is met.
std::vector<Pair> one_of_each() {
  std::set<std::string> met;
  std::vector<Pair> chosen;
  for (const Pair& pair : pairs(shipped_plugins())) {
    const bool backbone = met.insert(pair.backbone + pair.backbone_options).second;
    if (met.insert(pair.encoding + pair.encoding_options).second || backbone) chosen.push_back(pair);
  }
  return chosen;
}

std::string named(const std::string& name, const std::string& options) {
  return R"({"name": ")" + name + "\"" + (options == "{}" ? "}" : ", " + options.substr(1));
}

// What a plugin tells a kernel anew at every step, from memory of the host or as an argument, is an error or other bits here.
TEST(DeviceTrial, EveryPluginIsCapturedAndGivesTheSameBits) {
  const std::vector<Pair> all = one_of_each();
  EXPECT_GE(all.size(), shipped_plugins().backbones().size());
  for (const Pair& pair : all) {
    const std::string patch = R"({"model": {"layers": 1, "mlp": {"width": 8}, "backbone": )" + named(pair.backbone, pair.backbone_options) +
                              R"(, "encoding": )" + named(pair.encoding, pair.encoding_options) +
                              R"(}, "task": {"train": {"length": 5}}, "train": {"batch": 2, "lanes": 1, "micro_batch": 2}})";
    CountingDevice eager, captured;
    Training a(patch.c_str(), train("f32", 4, R"(, "run": {"capture": false})"), &eager), b(patch.c_str(), train("f32", 4), &captured);
    const auto expected = a.steps(4), found = b.steps(4);
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].loss, expected[i].loss) << pair.name << " " << i;
    EXPECT_EQ(a.parameters(), b.parameters()) << pair.name;
    EXPECT_EQ(captured.replays, 3) << pair.name;
  }
}

TEST_P(DeviceTraining, DropoutDropsTheElementsOfTheProcessor) {
  EmulatedDevice device;
  const std::string dropout = R"(, "model": {"embedding": {"dropout": 0.3}})";
  Training here(GetParam().patch, train("f64", 6, dropout), nullptr), there(GetParam().patch, train("f64", 6, dropout), &device),
      without(GetParam().patch, train("f64", 6), nullptr);
  const auto expected = here.steps(6), found = there.steps(6), other = without.steps(6);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_LE(apart(found[i].loss, expected[i].loss), 1e-9) << i;
    EXPECT_GT(apart(found[i].loss, other[i].loss), 1e-6) << i;
  }
}

TEST_P(DeviceTraining, AStepThatIsReplayedTakesNoMemoryAndWaitsForNothing) {
  CountingDevice device;
  Training training(GetParam().patch, train("f32", 20), &device);
  const auto slices = static_cast<int>(training.trainer->task().slices(Split::train).size());
  while (device.captures < slices) training.trainer->start_step();
  training.trainer->take_results();
  const CountingDevice* const now = &device;
  const int taken = now->taken, in = now->copied_in, out = now->copied_out, waits = now->waits, runs = now->runs, replays = now->replays;
  const std::int64_t blocks = training.trainer->system_blocks();
  for (int i = 0; i < 5; ++i) training.trainer->start_step();
  EXPECT_EQ(now->replays - replays, 5);
  EXPECT_EQ(now->taken, taken);
  EXPECT_EQ(training.trainer->system_blocks(), blocks);
  EXPECT_EQ(now->copied_in - in, 2 * 5) << "the batch, and the numbers of the update";
  EXPECT_EQ(now->copied_out, out);
  EXPECT_EQ(now->waits, waits);
  EXPECT_EQ(now->runs - runs, 2 * 5) << "what keeps the results";
  EXPECT_EQ(training.trainer->take_results().size(), 5u);
  EXPECT_EQ(now->copied_out, out + 1);
}

std::string by(const std::string& attention, const std::string& capture = "true") {
  return R"({"train": {"precision": "bf16", "steps": 6, "attention": ")" + attention +
         R"("}, "run": {"device": "cuda", "capture": )" + capture + "}}";
}

TEST(DeviceTrial, AttentionByALibraryIsCapturedAndOfOtherBits) {
  OpenDevice first, second, third;
  Training own(softmax, by("own"), &first), eager(softmax, by("cudnn", "false"), &second),
      captured(softmax, by("cudnn"), &third);
  const auto expected = own.steps(6), one = eager.steps(6), other = captured.steps(6);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(other[i].loss, one[i].loss) << i;
    EXPECT_LE(apart(one[i].loss, expected[i].loss), 0.02) << i;
  }
  EXPECT_EQ(captured.parameters(), eager.parameters());
  EXPECT_NE(captured.parameters(), own.parameters());
  EXPECT_EQ(first.attention_passes(), 0);
  EXPECT_EQ(second.attention_passes(), 6 * 2 * 2) << "steps, layers, passes";
  EXPECT_EQ(third.attention_passes(), 2 * 2 * 2) << "the first step, and the one that is captured";
}

TEST(DeviceTrial, AttentionByALibraryIsRefusedWhereItCannotBe) {
  const auto refused = [](const std::string& more, Device* device, const std::string& with) {
    try {
      Training training(softmax, more, device);
      ADD_FAILURE() << "expected: " << with;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("train.attention"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(with), std::string::npos) << error.what();
    }
  };
  OpenDevice device;
  refused(by("cudnn"), nullptr, "on the processor");
  refused(R"({"train": {"attention": "cudnn"}, "run": {"device": "cuda"}})", &device, "train.precision is f32");
  refused(R"({"train": {"attention": "cudnn", "precision": "bf16"}})", &device, "run.device is cpu");
}

TEST(DeviceTrial, MoreResultsThanADeviceKeepsAreReadOnTheWay) {
  OpenDevice device;
  const char* const tiny = R"({"model": {"dim": 4, "layers": 1, "mlp": {"width": 4}, "backbone": {"heads": 1, "short_conv": 0}, "encoding": {"name": "nope"}},
                               "task": {"train": {"rows": 20, "length": 2}}, "train": {"batch": 1, "lanes": 1, "micro_batch": 1}})";
  Training training(tiny, train("f32", 300), &device);
  for (int i = 0; i < 300; ++i) training.trainer->start_step();
  const std::vector<StepResult> results = training.trainer->take_results();
  ASSERT_EQ(results.size(), 300u);
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].step, static_cast<std::int64_t>(i) + 1);
    EXPECT_GT(results[i].loss, 0.0) << i;
  }
}

TEST(DeviceTrial, RoundsToBf16AsTheProcessorDoes) {
  EmulatedDevice device;
  Training training(selective, R"({"train": {"storage": "bf16", "steps": 3}})", &device);
  training.steps(3);
  for (const double value : training.parameters())
    ASSERT_EQ(std::bit_cast<std::uint32_t>(static_cast<float>(value)) & 0xffffu, 0u);
}

class DeviceTrialFolder : public testing::Test {
 protected:
  DeviceTrialFolder() {
    folder_ = (std::filesystem::temp_directory_path() / "phasor_device_XXXXXX").string();
    if (::mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("no temporary folder");
  }
  ~DeviceTrialFolder() override { std::filesystem::remove_all(folder_); }

  results::TrialRecord run(const std::string& more, TrialSettings settings) {
    ExperimentSpec spec(shipped_plugins());
    read_spec(spec, experiment(packed, more));
    settings.warn = [this](const std::string& line) {
      const std::lock_guard lock(warned_);
      warnings_ += line + "\n";
    };
    return run_trial(spec, settings);
  }
  static std::string patch(const std::string& run = "") {
    return R"({"model": {"embedding": {"dropout": 0.2}}, "train": {"steps": 9, "eval_every": 4}, "run": {"checkpoint_every": 2)" + run + "}}";
  }

  std::string folder_, warnings_;
  std::mutex warned_;
};

TEST_F(DeviceTrialFolder, ARecordDependsOnNoLoggingAndNoCapture) {
  OpenDevice device;
  const results::TrialRecord record = run(patch(R"(, "log_every": 1)"), {.device = &device});
  ASSERT_EQ(record.status, results::Status::done) << record.message;
  EXPECT_EQ(record.steps.size(), 9u);
  const results::TrialRecord rare = run(patch(R"(, "log_every": 4)"), {.device = &device});
  EXPECT_EQ(rare.bits, record.bits);
  ASSERT_EQ(rare.steps.size(), 4u);  // 1, 4, 8, 9
  EXPECT_EQ(rare.steps[1].loss, record.steps[3].loss);
  EXPECT_EQ(run(patch(R"(, "capture": false)"), {.device = &device}).bits, record.bits);
  const results::TrialRecord here = run(patch(), {});
  EXPECT_NE(here.id, record.id) << "the kind of device is part of the name";
  EXPECT_EQ(here.evals.size(), record.evals.size());
}

TEST_F(DeviceTrialFolder, AnInterruptedTrialEndsAsIfNothingHadHappened) {
  OpenDevice device;
  const results::TrialRecord whole = run(patch(), {.device = &device});
  int asked = 0;
  const results::TrialRecord part = run(patch(), {.stop = [&] { return ++asked == 5; }, .folder = folder_, .device = &device});
  EXPECT_EQ(part.message, "interrupted after step 5 of 9");
  const results::TrialRecord rest = run(patch(), {.folder = folder_, .device = &device});
  ASSERT_EQ(rest.status, results::Status::done) << rest.message;
  EXPECT_EQ(rest.bits, whole.bits);
  ASSERT_EQ(rest.steps.size(), whole.steps.size());
  for (std::size_t i = 0; i < rest.steps.size(); ++i) EXPECT_EQ(rest.steps[i].loss, whole.steps[i].loss) << i;
  EXPECT_EQ(warnings_, "");
}

TEST_F(DeviceTrialFolder, ADivergenceIsFoundThoughNobodyLooksAtEveryStep) {
  OpenDevice device;
  const results::TrialRecord record = run(R"({"train": {"steps": 30}, "optimizer": {"lr": 1e30, "clip": null}, "run": {"log_every": 7}})", {.device = &device});
  EXPECT_EQ(record.status, results::Status::diverged);
  const results::StepLog& last = record.steps.back();
  EXPECT_FALSE(std::isfinite(last.loss) && std::isfinite(last.grad_norm));
  EXPECT_NE(record.message.find("step " + std::to_string(last.step) + ":"), std::string::npos) << record.message;
}

/// Runs `work` on so many threads at once, each with its number.
void beside_each_other(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

std::string seeded(int seed) { return R"({"seed": )" + std::to_string(seed) + R"(, "train": {"steps": 9, "eval_every": 4}, "run": {"checkpoint_every": 2}})"; }

TEST_F(DeviceTrialFolder, TrialsBesideEachOtherAreWhatTheyAreAlone) {
  constexpr int trials = 3;
  std::vector<results::TrialRecord> alone, beside(trials);
  for (int i = 0; i < trials; ++i) {
    OpenDevice device;
    alone.push_back(run(seeded(i), {.device = &device}));
    ASSERT_EQ(alone.back().status, results::Status::done) << alone.back().message;
  }
  beside_each_other(trials, [&](int i) {
    OpenDevice device;
    beside[static_cast<std::size_t>(i)] = run(seeded(i), {.folder = folder_, .device = &device});
  });
  for (std::size_t i = 0; i < trials; ++i) {
    EXPECT_EQ(beside[i].status, results::Status::done) << beside[i].message;
    EXPECT_EQ(beside[i].id, alone[i].id);
    EXPECT_EQ(beside[i].bits, alone[i].bits);
    EXPECT_EQ(beside[i].steps.size(), alone[i].steps.size());
    EXPECT_EQ(beside[i].evals.size(), alone[i].evals.size());
  }
  EXPECT_NE(alone[0].bits, alone[1].bits);
}

/// Has no memory left after so many blocks, as a device that others have filled.
class FullDevice : public OpenDevice {
 public:
  explicit FullDevice(int blocks) : blocks_(blocks) {}
  void* allocate(std::size_t bytes) override {
    if (blocks_-- == 0) throw std::bad_alloc();
    return EmulatedDevice::allocate(bytes);
  }

 private:
  int blocks_;
};

/// Fails in the middle of a capture.
class FaultyDevice : public OpenDevice {
 public:
  void run(const void* kernel, const char* name, Dtype dtype, const void* args) override {
    if (capturing_ && ++captured_ == 20) throw UserError("a fault");
    EmulatedDevice::run(kernel, name, dtype, args);
  }
  void begin_capture() override {
    capturing_ = true;
    EmulatedDevice::begin_capture();
  }
  std::shared_ptr<void> end_capture() override {
    capturing_ = false;
    return EmulatedDevice::end_capture();
  }

 private:
  bool capturing_ = false;
  int captured_ = 0;
};

TEST_F(DeviceTrialFolder, OneThatFailsLeavesTheOthersWhole) {
  OpenDevice first;
  const results::TrialRecord alone = run(seeded(0), {.device = &first});
  results::TrialRecord good, full, faulty;
  std::atomic<bool> over = false;
  int rounds = 0;
  beside_each_other(3, [&](int i) {
    if (i == 0) {
      OpenDevice device;
      good = run(seeded(0), {.device = &device});
      over = true;
      return;
    }
    // Again and again, so that they fail in whatever the other does.
    for (int round = 0; round < 3 || !over; ++round) {
      FullDevice small(10 + round % 40);
      FaultyDevice broken;
      if (i == 1) full = run(seeded(1), {.device = &small});
      if (i == 2) faulty = run(seeded(2), {.device = &broken});
      if (i == 2) rounds = round + 1;
    }
  });
  EXPECT_EQ(good.status, results::Status::done) << good.message;
  EXPECT_EQ(good.bits, alone.bits);
  EXPECT_EQ(full.status, results::Status::oom);
  EXPECT_EQ(full.message, "out of memory");
  EXPECT_EQ(faulty.status, results::Status::error);
  EXPECT_NE(faulty.message.find("a fault"), std::string::npos) << faulty.message;
  EXPECT_GE(rounds, 3);
}

TEST_F(DeviceTrialFolder, TrialsThatAreInterruptedTogetherGoOn) {
  std::vector<results::TrialRecord> whole(2), rest(2);
  for (int i = 0; i < 2; ++i) {
    OpenDevice device;
    whole[static_cast<std::size_t>(i)] = run(seeded(i), {.device = &device});
  }
  std::array<int, 2> asked{};
  beside_each_other(2, [&](int i) {
    OpenDevice device;
    int& own = asked[static_cast<std::size_t>(i)];
    const results::TrialRecord part = run(seeded(i), {.stop = [&] { return ++own == 5; }, .folder = folder_, .device = &device});
    EXPECT_EQ(part.message, "interrupted after step 5 of 9");
  });
  beside_each_other(2, [&](int i) {
    OpenDevice device;
    rest[static_cast<std::size_t>(i)] = run(seeded(i), {.folder = folder_, .device = &device});
  });
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(rest[i].status, results::Status::done) << rest[i].message;
    EXPECT_EQ(rest[i].bits, whole[i].bits);
    EXPECT_EQ(rest[i].steps.size(), whole[i].steps.size());
  }
  EXPECT_EQ(warnings_, "");
}

TEST(Devices, ProcessesTakeTurns) {
  std::vector<std::int64_t> found;
  for (std::int64_t slot = 0; slot < 5; ++slot) found.push_back(device_of_slot(slot, 2));
  EXPECT_EQ(found, (std::vector<std::int64_t>{0, 1, 0, 1, 0}));
  EXPECT_EQ(device_of_slot(3, 1), 0);
}

/// A checkpoint is a file of numbers: what one side has saved the other side can read. (A trial never does so: its name has the
/// kind of device in it.)
TEST_F(DeviceTrialFolder, CheckpointsGoFromTheDeviceToTheProcessorAndBack) {
  for (const bool from_device : {true, false}) {
    OpenDevice device;
    Device* const first = from_device ? &device : nullptr;
    Device* const second = from_device ? nullptr : &device;
    const std::string more = train("f64", 8, R"(, "model": {"embedding": {"dropout": 0.2}})");
    Training whole(packed, more, first), saved(packed, more, first), restored(packed, more, second);
    saved.steps(4);
    results::TrialRecord record;
    record.id = "00000000-0000-5000-8000-000000000000";
    record.provenance = machine_provenance();
    record.spec = make_trial(saved.spec).spec;
    save_checkpoint(folder_, {record, {}}, *saved.trainer);
    std::string warning;
    ASSERT_TRUE(load_checkpoint(folder_, record, *restored.trainer, warning)) << warning;
    EXPECT_EQ(restored.parameters(), saved.parameters());
    EXPECT_EQ(restored.trainer->steps_done(), 4);
    const auto expected = whole.steps(8), found = restored.steps(4);
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].step, expected[4 + i].step);
      EXPECT_LE(apart(found[i].loss, expected[4 + i].loss), 1e-9) << i;
      EXPECT_EQ(found[i].lr, expected[4 + i].lr);
    }
  }
}

}  // namespace
}  // namespace phasor
