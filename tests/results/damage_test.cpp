#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/error.h"
#include "results/files.h"
#include "results/h5.h"
#include "results/store.h"
#include "tests/results/folder.h"

namespace phasor::results {
namespace {

void write_bytes(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// What load says of these bytes; empty when it takes them.
std::string refusal(const TemporaryFolder& folder, std::string_view bytes) {
  const std::string file = folder.path() + "/a.h5";
  write_bytes(file, bytes);
  try {
    load(file);
  } catch (const UserError& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find(file + ": "), 0u) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }
  return "";
}

TEST(Damage, ATruncatedFileIsRefusedWhereverItIsCut) {
  const TemporaryFolder folder;
  save(sample_record("a"), folder.path());
  const std::string whole = read_file(folder.path() + "/a.h5");
  ASSERT_GT(whole.size(), 4096u);
  ::testing::internal::CaptureStderr();
  for (std::size_t size = 0; size < whole.size(); size += 64) {
    EXPECT_NE(refusal(folder, std::string_view(whole).substr(0, size)), "") << "cut to " << size;
  }
  EXPECT_NE(refusal(folder, std::string_view(whole).substr(0, whole.size() - 1)), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");  // no stack of the library
  EXPECT_EQ(refusal(folder, whole), "");
}

TEST(Damage, AChangedBitIsRefusedOrChangesNothing) {
  const TemporaryFolder folder;
  save(sample_record("a"), folder.path());
  const std::string whole = read_file(folder.path() + "/a.h5");
  const TrialRecord good = load(folder.path() + "/a.h5");
  ::testing::internal::CaptureStderr();
  std::size_t taken = 0;
  for (std::size_t at = 0; at < whole.size(); at += 31) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
    if (!refusal(folder, bytes).empty()) continue;
    ++taken;
    // Taken: then the bit was in unused space, and saving the record again gives the old bytes.
    const TrialRecord loaded = load(folder.path() + "/a.h5");
    save(loaded, folder.path());
    EXPECT_EQ(read_file(folder.path() + "/a.h5"), whole) << "bit at " << at;
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_LT(taken, whole.size() / 31);
  EXPECT_EQ(good.id, "a");
}

/// What a reader that looks at everything makes of these bytes: the record saved again, or nothing when they are refused.
std::string read_again(std::string_view bytes) {
  try {
    const h5::Reader file(bytes);
    EXPECT_TRUE(file.compare_digests().empty());
    h5::Writer again;
    write_record(again, read_record(file));
    return again.image();
  } catch (const h5::Failure&) {
  } catch (const UserError&) {
  }
  return "";
}

TEST(Damage, EveryByteIsGuardedOrHoldsNothing) {
  h5::Writer file;
  write_record(file, sample_record("a"));
  const std::string whole = file.image();
  ASSERT_EQ(read_again(whole), whole);
  std::size_t refused = 0;
  ::testing::internal::CaptureStderr();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at * 5 % 8)));
    const std::string again = read_again(bytes);
    if (again.empty())
      ++refused;
    else
      ASSERT_EQ(again, whole) << "byte " << at;
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  std::printf("%zu bytes, %zu guarded\n", whole.size(), refused);
  EXPECT_GT(refused, whole.size() / 2);
}

TEST(Damage, WhatOnlyOthersReadIsComparedToo) {
  h5::Writer file;
  write_record(file, sample_record("a"));
  file.group("checkpoint");
  const double value = 0.8414709848;  // nowhere else
  file.column("checkpoint/more", std::vector<double>{1.0, value});
  const std::string whole = file.image();
  EXPECT_TRUE(h5::Reader(whole).compare_digests().empty());
  const std::size_t at = whole.find(std::string(reinterpret_cast<const char*>(&value), sizeof value));
  ASSERT_NE(at, std::string::npos);
  std::string bytes = whole;
  bytes[at] = 1;
  const h5::Reader damaged(bytes);
  EXPECT_EQ(read_record(damaged).id, "a");  // which does not look there
  EXPECT_THROW({ [[maybe_unused]] const auto paths = damaged.compare_digests(); }, h5::Failure);
}

TEST(Damage, OtherFilesAreRefusedWithTheReason) {
  const TemporaryFolder folder;
  EXPECT_NE(refusal(folder, "").find("not a whole HDF5 file"), std::string::npos);
  EXPECT_NE(refusal(folder, std::string(5000, 'x')).find("not a whole HDF5 file"), std::string::npos);
  h5::Writer other;
  other.column("data", std::vector<double>{1.0});
  EXPECT_NE(refusal(folder, other.image()).find("not of a phasor trial"), std::string::npos);
  EXPECT_THROW(load(folder.path() + "/nothing.h5"), UserError);
}

TEST(Damage, ANewerFormatIsRefusedByItsNumber) {
  const TemporaryFolder folder;
  h5::Writer newer;
  newer.attribute("format", 2);
  newer.attribute("complete", 1);
  EXPECT_EQ(refusal(folder, newer.image()),
            folder.path() + "/a.h5: format 2, this program reads format 1, use the phasor that wrote it or a newer one");
}

TEST(Damage, AFileWithoutItsLastMarkIsNotComplete) {
  const TemporaryFolder folder;
  h5::Writer half;
  half.attribute("format", 1);
  half.attribute("id", std::string("a"));
  EXPECT_NE(refusal(folder, half.image()).find("not complete"), std::string::npos);
}

TEST(Damage, AMissingColumnIsNamed) {
  const TemporaryFolder folder;
  h5::Writer file;
  file.attribute("format", 1);
  for (const char* name : {"id", "message", "bits"}) file.attribute(name, std::string("a"));
  file.attribute("status", std::string("done"));
  file.column("spec", std::vector<std::string>{"{}"});
  file.attribute("complete", 1);
  EXPECT_NE(refusal(folder, file.image()).find("steps/step"), std::string::npos);
}

TEST(Damage, KilledBetweenTwoBytesLeavesTheOldFile) {
  const TemporaryFolder folder;
  save(sample_record("a"), folder.path());
  const std::string before = read_file(folder.path() + "/a.h5");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit{4096, 4096};  // the signal of a file that grows beyond it ends the process inside the write
    ::setrlimit(RLIMIT_FSIZE, &limit);
    save(sample_record("a", 500), folder.path());
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGXFSZ);
  EXPECT_EQ(read_file(folder.path() + "/a.h5"), before);
  EXPECT_TRUE(has(folder.path(), "a"));
  EXPECT_TRUE(load_folder(folder.path()).damaged.empty());
}

TEST(Damage, KilledWhileSavingLeavesOnlyWholeFilesAndAllThatWereSaved) {
  const TemporaryFolder folder;
  std::size_t total = 0;
  for (int round = 0; round < 20; ++round) {
    int saved[2];
    ASSERT_EQ(::pipe(saved), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int i = 0;; ++i) {
        save(sample_record("r" + std::to_string(round) + "-" + std::to_string(i % 40), 2000), folder.path());
        if (::write(saved[1], "x", 1) != 1) ::_exit(1);
      }
    }
    char first = 0;  // killed at some moment after its first save, however slow the machine is today
    ASSERT_EQ(::read(saved[0], &first, 1), 1);
    ::usleep(static_cast<useconds_t>(7919 * round % 20000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    ::close(saved[0]);
    ::close(saved[1]);
    const Folder found = load_folder(folder.path());
    EXPECT_TRUE(found.damaged.empty()) << found.damaged.front().file << ": " << found.damaged.front().reason;
    EXPECT_GT(found.records.size(), total);  // what was saved before the kill is there
    total = found.records.size();
  }
}

}  // namespace
}  // namespace phasor::results
