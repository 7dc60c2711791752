#include "sweeps/lease.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "experiments/checkpoint.h"
#include "tests/sweeps/scratch.h"

namespace phasor::sweeps {
namespace {

class LeaseTest : public Scratch {
 protected:
  LeaseTest() { std::filesystem::create_directories(path("checkpoints")); }
  std::string folder() const { return path(""); }
  std::string file(const std::string& name) const { return path("leases/" + name); }

  /// An attempt whose process is gone.
  void lose(const std::string& id, std::int64_t replaces = 0) const {
    const pid_t child = ::fork();
    if (child == 0) {
      Leases leases(folder(), 60.0, 1);
      ::_exit(leases.acquire(id, replaces) ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }

  /// Asks as a runner does until `seconds` have passed.
  std::optional<Lease> wait(Leases& leases, double seconds) const {
    std::optional<Lease> lease;
    for (int i = 0; i < static_cast<int>(seconds / 0.02) && !lease; ++i) {
      lease = leases.acquire("a", 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return lease;
  }
};

TEST_F(LeaseTest, OneOwner) {
  Leases mine(folder(), 60.0, 1), others(folder(), 60.0, 1);
  const auto lease = mine.acquire("a", 0);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->number, 1);
  EXPECT_EQ(lease->lost, 0);
  EXPECT_FALSE(others.acquire("a", 0));
  EXPECT_TRUE(others.acquire("b", 0));
  EXPECT_TRUE(mine.beat(*lease));
  EXPECT_TRUE(holds_lease(folder(), "a", lease->token));
  EXPECT_FALSE(holds_lease(folder(), "a", lease->token + 1));
  mine.release(*lease);
  EXPECT_FALSE(mine.beat(*lease));
  EXPECT_FALSE(holds_lease(folder(), "a", lease->token));
  EXPECT_TRUE(others.acquire("a", 0));
}

TEST_F(LeaseTest, WhatEndsBetweenTheLookAndTheLeaseIsNotRunAgain) {
  Leases mine(folder(), 60.0, 1), others(folder(), 60.0, 1);
  bool recorded = false;
  int looks = 0;
  const auto has_ended = [&] {
    const bool found = recorded;
    if (++looks == 1) {  // right after our first look: another owner takes it, stores its record and is gone
      const auto lease = others.acquire("a", 0);
      EXPECT_TRUE(lease);
      recorded = true;
      others.release(*lease);
    }
    return found;
  };
  EXPECT_FALSE(mine.acquire_unless(has_ended, "a", 0));
  EXPECT_EQ(looks, 2);
  EXPECT_TRUE(read_leases(folder()).owners.empty());  // and it is not held
  EXPECT_FALSE(mine.acquire_unless(has_ended, "a", 0));
  EXPECT_EQ(looks, 3);  // what has ended is not tried for
  EXPECT_TRUE(mine.acquire_unless([] { return false; }, "a", 0));
}

TEST_F(LeaseTest, SignsOfLifeGrowNothing) {
  Leases leases(folder(), 60.0, 1);
  const auto lease = leases.acquire("a", 0);
  ASSERT_TRUE(leases.beat(*lease));
  const auto size = std::filesystem::file_size(file("a.1"));
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(leases.beat(*lease));
  EXPECT_EQ(std::filesystem::file_size(file("a.1")), size);
  EXPECT_TRUE(holds_lease(folder(), "a", lease->token));
}

TEST_F(LeaseTest, OfManyAtOnceOneSucceeds) {
  lose("a");  // all see it expired
  std::atomic<int> taken = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&] {
      Leases leases(folder(), 60.0, 1);
      for (int attempt = 0; attempt < 20; ++attempt) taken += leases.acquire("a", 0) ? 1 : 0;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 1);
}

TEST_F(LeaseTest, AProcessThatIsGoneLosesItAtOnce) {
  lose("a");
  Leases leases(folder(), 3600.0, 1);
  const auto lease = leases.acquire("a", 0);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->number, 2);
  EXPECT_EQ(lease->lost, 1);
  EXPECT_NE(lease->last.find("process "), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(file("a.1.lost")));
  EXPECT_EQ(read_leases(folder()).lost, 1);
}

TEST_F(LeaseTest, WhoStandsStillLosesIt) {
  Leases mine(folder(), 2.0, 1), others(folder(), 60.0, 1);  // the lease says how long, not who looks
  const auto lease = mine.acquire("a", 0);
  for (int i = 0; i < 5; ++i) {  // longer than 2 s, with signs of life
    EXPECT_FALSE(wait(others, 0.5));
    EXPECT_TRUE(mine.beat(*lease));
  }
  const auto taken = wait(others, 60.0);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->number, 2);
  EXPECT_FALSE(mine.beat(*lease));
  mine.release(*lease);  // of a lease that is lost: it must leave the other's alone
  EXPECT_TRUE(others.beat(*taken));
  EXPECT_TRUE(holds_lease(folder(), "a", taken->token));
}

TEST_F(LeaseTest, SleepIsNotWaiting) {
  Leases mine(folder(), 1.2, 1), others(folder(), 60.0, 1);
  const auto lease = mine.acquire("a", 0);
  EXPECT_FALSE(others.acquire("a", 0));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // as a machine that sleeps: it counts as one second
  EXPECT_FALSE(others.acquire("a", 0));
  EXPECT_TRUE(mine.beat(*lease));
}

TEST_F(LeaseTest, AttemptsCountUntilOneGetsSomewhere) {
  Leases leases(folder(), 60.0, 1);
  lose("a");
  lose("a");
  const auto third = leases.acquire("a", 0);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->lost, 2);
  leases.release(*third);
  write("checkpoints/a.h5", "newer than those attempts");
  const auto again = leases.acquire("a", 0);
  EXPECT_EQ(again->lost, 0);
  leases.release(*again);
  lose("a");
  const auto fifth = leases.acquire("a", 0);
  EXPECT_EQ(fifth->number, 4);
  EXPECT_EQ(fifth->lost, 1);
}

TEST_F(LeaseTest, AttemptsInThePlaceOfARecordCountByThemselves) {
  Leases leases(folder(), 60.0, 1);
  lose("a");
  lose("a");
  lose("a", 7);  // a record was made meanwhile, and stays while others try to replace it
  lose("a", 7);
  const auto lease = leases.acquire("a", 7);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->lost, 2);
  leases.release(*lease);
  EXPECT_EQ(leases.acquire("a", 8)->lost, 0);
}

TEST_F(LeaseTest, AnAttemptThatWasLostIsNotMadeAgain) {
  std::filesystem::create_directories(path("leases"));
  write("leases/a.1.lost", "what it was");
  Leases leases(folder(), 60.0, 1);
  const auto lease = leases.acquire("a", 0);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->number, 2);
}

TEST_F(LeaseTest, AFileThatIsNoLeaseIsSomebodys) {
  std::filesystem::create_directories(path("leases"));
  write("leases/a.1", "half wr");
  Leases leases(folder(), 0.3, 1);
  EXPECT_FALSE(leases.acquire("a", 0));
  EXPECT_TRUE(wait(leases, 60.0));  // until it has stood still
}

TEST_F(LeaseTest, WhoWorks) {
  EXPECT_TRUE(read_leases(folder()).owners.empty());
  Leases leases(folder(), 60.0, 3);
  const auto lease = leases.acquire("a", 0);
  lose("b");
  const Standing standing = read_leases(folder());
  ASSERT_EQ(standing.owners.size(), 1u);  // the other is gone
  EXPECT_EQ(standing.owners.at("a").process, ::getpid());
  EXPECT_EQ(standing.owners.at("a").jobs, 3);
}

}  // namespace
}  // namespace phasor::sweeps
