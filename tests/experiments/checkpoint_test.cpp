// A trial that is killed and run again ends as if nothing had happened (L17, L18, L35; A4).

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "experiments/checkpoint.h"
#include "experiments/trial.h"
#include "results/files.h"
#include "results/h5.h"
#include "results/store.h"
#include "tests/experiments/fixture.h"

namespace phasor {
namespace {

namespace fs = std::filesystem;

class Resume : public testing::Test {
 protected:
  Resume() {
    folder_ = (fs::temp_directory_path() / "phasor_resume_XXXXXX").string();
    if (::mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("no temporary folder");
  }
  ~Resume() override { fs::remove_all(folder_); }

  /// 200 rows in batches of 10: an epoch is 20 steps, so most kills are in the middle of one. With dropout, clipping,
  /// evaluations on the way.
  static std::string patch(const std::string& more = "") {
    return R"({"model": {"embedding": {"dropout": 0.2}}, "train": {"steps": 130, "eval_every": 25},
               "run": {"checkpoint_every": 7, "log_every": 3)" + more + "}}";
  }

  results::TrialRecord run(const std::string& patch, TrialSettings settings) {
    ExperimentSpec spec(shipped_plugins());
    read_spec(spec, small_experiment(patch));
    settings.warn = [this](const std::string& line) { warnings_.push_back(line); };
    results::TrialRecord record = run_trial(spec, settings);
    if (!settings.folder.empty()) drop_checkpoint(settings.folder, record, spec.run.keep_checkpoint);
    return record;
  }

  /// Runs in a process of its own that is killed when `step` is done; what is left is the folder.
  void run_until_killed(const std::string& patch, std::int64_t step) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto watch = [&](const TrialProgress& now) {
        if (now.phase == "train" && now.step == step) ::raise(SIGKILL);
      };
      run(patch, {.watch = watch, .folder = folder_});
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }

  static double summary(const results::TrialRecord& record, const std::string& name) {
    for (const auto& [key, value] : record.summary)
      if (key == name) return value;
    return -1.0;
  }

  static void expect_same(const results::TrialRecord& got, const results::TrialRecord& want) {
    EXPECT_EQ(got.status, results::Status::done) << got.message;
    EXPECT_EQ(got.bits, want.bits);
    ASSERT_EQ(got.steps.size(), want.steps.size());
    for (std::size_t i = 0; i < want.steps.size(); ++i) {
      EXPECT_EQ(got.steps[i].step, want.steps[i].step);
      EXPECT_EQ(got.steps[i].loss, want.steps[i].loss);
      EXPECT_EQ(got.steps[i].lr, want.steps[i].lr);
      EXPECT_EQ(got.steps[i].grad_norm, want.steps[i].grad_norm);
      EXPECT_EQ(got.steps[i].clipped, want.steps[i].clipped);
    }
    ASSERT_EQ(got.evals.size(), want.evals.size());
    for (std::size_t i = 0; i < want.evals.size(); ++i) {
      EXPECT_EQ(got.evals[i].step, want.evals[i].step);
      EXPECT_EQ(got.evals[i].value, want.evals[i].value);
    }
    for (const char* name : {"steps", "spikes", "clipped_share", "tokens", "steps_without_targets"})
      EXPECT_EQ(summary(got, name), summary(want, name)) << name;
  }

  std::string folder_;
  std::vector<std::string> warnings_;
};

TEST_F(Resume, KilledAtAnyStep) {
  const results::TrialRecord whole = run(patch(), {});
  ASSERT_EQ(whole.status, results::Status::done) << whole.message;
  for (const std::int64_t step : {1, 50, 99, 100, 101, 113, 129}) {
    run_until_killed(patch(), step);
    const bool kept = fs::exists(results::checkpoint_file(folder_, whole.id));
    EXPECT_EQ(kept, step > 7) << step;
    std::int64_t first = 0;
    const auto watch = [&](const TrialProgress& now) { first = first == 0 ? now.step : first; };
    const results::TrialRecord resumed = run(patch(), {.watch = watch, .folder = folder_});
    expect_same(resumed, whole);
    EXPECT_EQ(first, (step - 1) / 7 * 7 + 1) << "the steps before are not done again";
    EXPECT_EQ(summary(resumed, "resumed"), kept ? 1.0 : 0.0);
    EXPECT_FALSE(fs::exists(results::checkpoint_file(folder_, whole.id))) << "a trial that has ended leaves none";
  }
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(Resume, KilledAgainAndAgainWithOtherThreadsAndIntervals) {
  const results::TrialRecord whole = run(patch(), {});
  run_until_killed(patch(), 40);
  run_until_killed(patch(R"(, "threads": 3)"), 61);
  run_until_killed(patch(R"(, "threads": 2)"), 104);
  expect_same(run(patch(), {.folder = folder_}), whole);
}

TEST_F(Resume, SgdWithMomentumAndF64) {
  const std::string other = R"({"optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9, "nesterov": true}, "train": {"steps": 30, "precision": "f64"},
                                "run": {"checkpoint_every": 4}})";
  const results::TrialRecord whole = run(other, {});
  run_until_killed(other, 19);
  expect_same(run(other, {.folder = folder_}), whole);
}

TEST_F(Resume, InterruptedTrialsGoOn) {
  const results::TrialRecord whole = run(patch(), {});
  int asked = 0;
  const results::TrialRecord stopped = run(patch(), {.stop = [&] { return ++asked == 44; }, .folder = folder_});
  EXPECT_EQ(stopped.message, "interrupted after step 44 of 130");
  std::int64_t first = 0;
  expect_same(run(patch(), {.watch = [&](const TrialProgress& now) { first = first == 0 ? now.step : first; }, .folder = folder_}), whole);
  EXPECT_EQ(first, 45);
}

TEST_F(Resume, KilledWhileSaving) {
  // A checkpoint after every step, killed at times that have nothing to do with steps: whatever file is found is whole.
  const std::string often = R"({"train": {"steps": 400}, "run": {"checkpoint_every": 1}})";
  const results::TrialRecord whole = run(often, {});
  int killed = 0, found = 0;
  for (int i = 0; killed < 100; ++i) {
    ASSERT_LT(i, 2000) << "most runs end before they are killed";
    int trained[2];
    ASSERT_EQ(::pipe(trained), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const auto watch = [&](const TrialProgress&) { [[maybe_unused]] const ssize_t told = ::write(trained[1], "x", 1); };
      run(often, {.watch = watch, .folder = folder_});
      ::_exit(0);
    }
    ::close(trained[1]);
    // Killed at some moment after its second step, however slow the machine is today: one checkpoint is there by then.
    char step = 0;
    for (int left = 2; left > 0 && ::read(trained[0], &step, 1) == 1;) --left;
    ::usleep(static_cast<useconds_t>(1613 * i % 40000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ::close(trained[0]);
    killed += WIFSIGNALED(status) ? 1 : 0;
    if (!fs::exists(results::checkpoint_file(folder_, whole.id))) continue;
    ++found;
    const std::string image = results::read_file(results::checkpoint_file(folder_, whole.id));
    const results::h5::Reader file(image);  // throws when it is not whole
    ASSERT_TRUE(file.compare_digests().empty());
    ASSERT_EQ(results::read_record(file).id, whole.id);
  }
  EXPECT_GT(found, 80);
  results::TrialRecord resumed = run(often, {.folder = folder_});
  EXPECT_EQ(resumed.bits, whole.bits);
  EXPECT_TRUE(warnings_.empty()) << warnings_.front();
}

TEST_F(Resume, BadCheckpointIsNamedAndTheTrialStartsAnew) {
  const results::TrialRecord whole = run(patch(), {});
  const std::string file = results::checkpoint_file(folder_, whole.id);
  run_until_killed(patch(), 60);
  fs::resize_file(file, fs::file_size(file) / 2);
  expect_same(run(patch(), {.folder = folder_}), whole);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find(file), std::string::npos) << warnings_[0];

  // One bit of a parameter.
  warnings_.clear();
  run_until_killed(patch(), 60);
  std::string image = results::read_file(file);
  image[image.size() / 2] = static_cast<char>(image[image.size() / 2] ^ 4);
  std::ofstream(file, std::ios::binary) << image;
  expect_same(run(patch(), {.folder = folder_}), whole);
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(Resume, FullDiskCostsTheCheckpointAndNotTheTrial) {
  const results::TrialRecord whole = run(patch(), {});
  run_until_killed(patch(), 30);
  const std::string before = results::read_file(results::checkpoint_file(folder_, whole.id));
  struct rlimit old {};
  ::getrlimit(RLIMIT_FSIZE, &old);
  struct rlimit tight = old;
  tight.rlim_cur = 4096;
  ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &tight);
  int asked = 0;
  const results::TrialRecord stopped = run(patch(), {.stop = [&] { return ++asked == 20; }, .folder = folder_});
  ::setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_EQ(stopped.message, "interrupted after step 48 of 130");
  EXPECT_FALSE(warnings_.empty());
  EXPECT_EQ(results::read_file(results::checkpoint_file(folder_, whole.id)), before) << "the last good one stays";
  expect_same(run(patch(), {.folder = folder_}), whole);
}

TEST_F(Resume, KeptCheckpointHoldsTheTrainedParameters) {
  const results::TrialRecord record = run(R"({"run": {"keep_checkpoint": true}})", {.folder = folder_});
  const std::string image = results::read_file(results::checkpoint_file(folder_, record.id));
  const results::h5::Reader file(image);
  for (const results::ParameterInfo& parameter : record.parameters)
    EXPECT_EQ(static_cast<std::int64_t>(file.floats("values/" + parameter.name).size()), parameter.count) << parameter.name;
}

}  // namespace
}  // namespace phasor
