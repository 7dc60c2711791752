#include "sweeps/status.h"

#include <chrono>
#include <gtest/gtest.h>

#include "results/manifest.h"
#include "results/store.h"
#include "sweeps/lease.h"
#include "tests/sweeps/scratch.h"

namespace phasor::sweeps {
namespace {

/// A folder as runners leave it at some moment, with the times of its files as if trials took minutes.
class StatusTest : public Scratch {
 protected:
  StatusTest() { std::filesystem::create_directories(folder()); }
  std::string folder() const { return path("out"); }

  void expect(std::int64_t trials) {
    results::Manifest manifest;
    manifest.name = "uniform";
    results::ManifestAxis axis;
    axis.name = axis.path = "seed";
    axis.role = "replicate";
    for (std::int64_t i = 0; i < trials; ++i) {
      axis.labels.push_back(std::to_string(i));
      axis.values.emplace_back(i);
      manifest.trials.push_back({name(i), {i}, "", 0});
    }
    manifest.axes.push_back(axis);
    results::write_manifest(manifest, folder());
  }
  static std::string name(std::int64_t trial) { return "trial" + std::to_string(trial); }

  void age(const std::string& file, double seconds) const {
    const auto now = std::filesystem::file_time_type::clock::now();
    std::filesystem::last_write_time(
        file, now - std::chrono::duration_cast<std::filesystem::file_time_type::duration>(std::chrono::duration<double>(seconds)));
  }
  void started(std::int64_t trial, double ago) const { age(write("out/" + name(trial) + ".json", "{}"), ago); }
  void done(std::int64_t trial, double measured, double began, double ended) const {
    results::TrialRecord record;
    record.id = name(trial);
    record.spec = Json::object();
    record.summary = {{"seconds", measured}};
    results::save(record, folder());
    started(trial, began);
    age(folder() + "/" + name(trial) + ".h5", ended);
  }
  double eta() const { return read_status(folder()).eta_seconds.value(); }
};

TEST_F(StatusTest, WhatIsLeftIsDealtToThePlacesThatBecomeFree) {
  expect(5);
  Leases runner(folder(), 60.0, 2);
  done(0, 98.0, 160.0, 60.0);  // the process took 2 s more than its trial
  done(1, 98.0, 160.0, 60.0);
  started(2, 60.0);
  started(3, 60.0);
  const auto first = runner.acquire(name(2), false), second = runner.acquire(name(3), false);
  EXPECT_NEAR(read_status(folder()).mean_seconds, 100.0, 1e-3);
  EXPECT_NEAR(eta(), 40.0 + 100.0, 1.0);  // not (40 + 40 + 100) / 2: half of the last trial cannot be run elsewhere
  done(2, 98.0, 100.0, 0.0);
  runner.release(*first);
  EXPECT_NEAR(eta(), 100.0, 1.0);
  started(4, 0.0);
  const auto last = runner.acquire(name(4), false);
  EXPECT_NEAR(eta(), 100.0, 1.0);
  started(3, 500.0);  // longer than the others: it may end at any moment
  started(4, 70.0);
  EXPECT_NEAR(eta(), 30.0, 1.0);
}

TEST_F(StatusTest, ARunnerThatHasFewerTrialsThanJobs) {
  expect(3);
  Leases runner(folder(), 60.0, 8);
  done(0, 10.0, 21.0, 10.0);
  started(1, 3.0);
  started(2, 5.0);
  const auto first = runner.acquire(name(1), false), second = runner.acquire(name(2), false);
  EXPECT_NEAR(eta(), 8.0, 0.5);  // a trial of 11 s that began 3 s ago
}

TEST_F(StatusTest, TimesOfFilesThatMeanNothing) {
  expect(4);
  Leases runner(folder(), 60.0, 1);
  const auto held = runner.acquire(name(3), false);
  started(3, 0.0);
  done(0, 20.0, 3600.0, 0.0);  // run again by hand, an hour after its experiment file was written
  done(1, 20.0, 0.0, 10.0);    // copied: the record seems older than its start
  done(2, 20.0, 15.0, 0.0);    // resumed: it took 20 s in all, 15 since it was started last
  EXPECT_NEAR(read_status(folder()).mean_seconds, 20.0, 1e-3);
  EXPECT_NEAR(eta(), 20.0, 0.5);
}

TEST_F(StatusTest, NothingIsSaidWhereNothingIsKnown) {
  expect(2);
  EXPECT_FALSE(read_status(folder()).eta_seconds);
  Leases runner(folder(), 60.0, 1);
  const auto held = runner.acquire(name(0), false);
  started(0, 5.0);
  EXPECT_FALSE(read_status(folder()).eta_seconds);  // no trial was measured
  done(0, 5.0, 5.0, 0.0);
  runner.release(*held);
  EXPECT_FALSE(read_status(folder()).eta_seconds);  // nobody works
  EXPECT_EQ(read_status(folder()).missing, 1);
}

}  // namespace
}  // namespace phasor::sweeps
