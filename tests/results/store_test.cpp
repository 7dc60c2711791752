#include "results/store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <string>

#include "core/base/error.h"
#include "results/files.h"
#include "results/replace.h"
#include "tests/results/folder.h"

namespace phasor::results {
namespace {

std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }

TEST(Store, ANewFileReplacesNothing) {
  const TemporaryFolder folder;
  EXPECT_TRUE(write_new(folder.path(), "f", "f", "one", Durable::yes));
  EXPECT_FALSE(write_new(folder.path(), "f", "f", "two", Durable::no));
  EXPECT_EQ(read_file(folder.path() + "/f"), "one");
  std::ofstream(folder.path() + "/.f.1.00000000.tmp") << "half";
  std::ofstream(folder.path() + "/.g.1.00000000.tmp") << "half";
  remove_asides(folder.path(), "f");
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) left.insert(entry.path().filename().string());
  EXPECT_EQ(left, (std::set<std::string>{"f", ".g.1.00000000.tmp"}));
  EXPECT_THROW(write_new(folder.path() + "/absent", "f", "f", "one", Durable::no), UserError);
}

TEST(Store, EverythingComesBack) {
  const TemporaryFolder folder;
  const TrialRecord saved = sample_record("a");
  save(saved, folder.path());
  const TrialRecord loaded = load(folder.path() + "/a.h5");
  EXPECT_EQ(loaded.id, saved.id);
  EXPECT_EQ(loaded.spec.canonical(), saved.spec.canonical());
  EXPECT_EQ(loaded.spec.find("seed")->as_integer(), 9007199254740993);
  EXPECT_EQ(loaded.status, Status::diverged);
  EXPECT_EQ(loaded.message, saved.message);
  EXPECT_EQ(loaded.bits, saved.bits);
  ASSERT_EQ(loaded.steps.size(), saved.steps.size());
  for (std::size_t i = 0; i < saved.steps.size(); ++i) {
    EXPECT_EQ(loaded.steps[i].step, saved.steps[i].step);
    EXPECT_EQ(bits(loaded.steps[i].loss), bits(saved.steps[i].loss));
    EXPECT_EQ(bits(loaded.steps[i].lr), bits(saved.steps[i].lr));
    EXPECT_EQ(bits(loaded.steps[i].grad_norm), bits(saved.steps[i].grad_norm));
    EXPECT_EQ(loaded.steps[i].clipped, saved.steps[i].clipped);
  }
  ASSERT_EQ(loaded.evals.size(), saved.evals.size());
  for (std::size_t i = 0; i < saved.evals.size(); ++i) {
    EXPECT_EQ(loaded.evals[i].step, saved.evals[i].step);
    EXPECT_EQ(loaded.evals[i].split, saved.evals[i].split);
    EXPECT_EQ(loaded.evals[i].metric, saved.evals[i].metric);
    EXPECT_EQ(loaded.evals[i].slice, saved.evals[i].slice);
    EXPECT_EQ(bits(loaded.evals[i].value), bits(saved.evals[i].value));
    EXPECT_EQ(loaded.evals[i].count, saved.evals[i].count);
  }
  ASSERT_EQ(loaded.parameters.size(), 2u);
  EXPECT_EQ(loaded.parameters[1].name, "layers.0.encoding.temperature");
  EXPECT_EQ(loaded.parameters[1].count, 8);
  EXPECT_TRUE(loaded.parameters[1].frozen && loaded.parameters[1].decays);
  EXPECT_FALSE(loaded.parameters[0].frozen || loaded.parameters[0].decays);
  ASSERT_EQ(loaded.summary.size(), 2u);
  EXPECT_EQ(loaded.summary[0].first, "steps_to_solve");
  EXPECT_TRUE(std::isnan(loaded.summary[0].second));
  EXPECT_EQ(loaded.provenance, saved.provenance);
}

TEST(Store, AnEmptyRecordComesBack) {
  const TemporaryFolder folder;
  TrialRecord record;
  record.id = "empty";
  record.spec = Json::object();
  save(record, folder.path());
  const TrialRecord loaded = load(folder.path() + "/empty.h5");
  EXPECT_EQ(loaded.status, Status::done);
  EXPECT_TRUE(loaded.steps.empty() && loaded.evals.empty() && loaded.parameters.empty());
  EXPECT_TRUE(loaded.summary.empty() && loaded.provenance.empty());
  EXPECT_EQ(loaded.message, "");
}

TEST(Store, EqualRecordsGiveEqualBytes) {
  const TemporaryFolder folder;
  save(sample_record("a"), folder.path());
  const std::string first = read_file(folder.path() + "/a.h5");
  save(sample_record("a"), folder.path());
  EXPECT_EQ(read_file(folder.path() + "/a.h5"), first);
}

TEST(Store, ManySavesOfOneTrialDoNotGrowTheFile) {
  const TemporaryFolder folder;
  save(sample_record("a"), folder.path());
  const auto size = std::filesystem::file_size(folder.path() + "/a.h5");
  for (int i = 0; i < 50; ++i) save(sample_record("a"), folder.path());
  EXPECT_EQ(std::filesystem::file_size(folder.path() + "/a.h5"), size);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);  // nothing left aside
}

TEST(Store, HasMeansWholeAndOfThatName) {
  const TemporaryFolder folder;
  EXPECT_FALSE(has(folder.path(), "a"));
  EXPECT_FALSE(has(folder.path() + "/nowhere", "a"));
  save(sample_record("a"), folder.path());
  EXPECT_TRUE(has(folder.path(), "a"));
  std::filesystem::copy_file(folder.path() + "/a.h5", folder.path() + "/b.h5");
  EXPECT_FALSE(has(folder.path(), "b"));
  std::filesystem::resize_file(folder.path() + "/a.h5", 1000);
  EXPECT_FALSE(has(folder.path(), "a"));
}

TEST(Store, AFolderIsReadInOrderOfIdAndNamesWhatIsDamaged) {
  const TemporaryFolder folder;
  for (const char* id : {"c", "a", "b", "d"}) save(sample_record(id), folder.path());
  std::filesystem::resize_file(folder.path() + "/b.h5", 700);
  std::filesystem::rename(folder.path() + "/d.h5", folder.path() + "/e.h5");
  std::ofstream(folder.path() + "/.f.123.tmp") << "half";
  std::ofstream(folder.path() + "/notes.txt") << "no trial";
  std::filesystem::create_directory(folder.path() + "/logs.h5");
  const Folder found = load_folder(folder.path());
  ASSERT_EQ(found.records.size(), 2u);
  EXPECT_EQ(found.records[0].id, "a");
  EXPECT_EQ(found.records[1].id, "c");
  ASSERT_EQ(found.damaged.size(), 2u);
  EXPECT_EQ(found.damaged[0].file, folder.path() + "/b.h5");
  EXPECT_NE(found.damaged[0].reason.find("cut off"), std::string::npos) << found.damaged[0].reason;
  EXPECT_EQ(found.damaged[1].reason, "holds trial d, the name says e");
  EXPECT_THROW(load_folder(folder.path() + "/nowhere"), UserError);
}

TEST(Store, WhatWasSeenIsReplacedAndNothingElse) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/f";
  const auto put = [&](const std::optional<Stamp>& seen) { return write_instead(folder.path(), "f", "f", "new", seen); };
  EXPECT_FALSE(stamp_of(file));
  EXPECT_TRUE(put({}));
  EXPECT_FALSE(put({}));
  const std::optional<Stamp> seen = stamp_of(file);
  write_whole(folder.path(), "f", "f", "somebody else's");
  EXPECT_FALSE(put(seen));
  EXPECT_EQ(read_file(file), "somebody else's");
  EXPECT_TRUE(put(stamp_of(file)));
  EXPECT_EQ(read_file(file), "new");
  std::filesystem::remove(file);
  EXPECT_TRUE(put(seen));  // gone meanwhile
  std::filesystem::remove(file);
  std::filesystem::create_directories(file + "/more");
  EXPECT_THROW(put(stamp_of(file)), UserError);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);  // nothing is left aside
}

TEST(Store, AFailureIsNoResult) {
  const TemporaryFolder folder;
  TrialRecord record = sample_record("a");
  EXPECT_FALSE(has_result(folder.path(), "a"));
  for (const Status status : {Status::done, Status::diverged, Status::error, Status::crashed, Status::lost}) {
    record.status = status;
    save(record, folder.path());
    EXPECT_EQ(has_result(folder.path(), "a"), status == Status::done || status == Status::diverged);
  }
}

std::string message_of_save(const std::string& folder) {
  try {
    save(sample_record("a"), folder);
  } catch (const UserError& error) {
    return error.what();
  }
  return "saved";
}

TEST(Store, AMissingFolderIsNamed) {
  const TemporaryFolder folder;
  const std::string message = message_of_save(folder.path() + "/nowhere");
  EXPECT_EQ(message, folder.path() + "/nowhere/a.h5: cannot be written, no such file or directory; make the folder first, "
                                     "or name another");
}

TEST(Store, AFolderWithoutRightsIsNamed) {
  const TemporaryFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
  const bool root = ::geteuid() == 0;
  if (root && ::seteuid(65534) != 0) GTEST_SKIP() << "root, and cannot become another user";
  const std::string message = message_of_save(folder.path());
  const bool back = !root || ::seteuid(0) == 0;
  ASSERT_TRUE(back);
  EXPECT_NE(message.find(folder.path() + "/a.h5: cannot be written, permission denied"), std::string::npos) << message;
}

/// Runs `work` in a child; its exit status.
template <class Work>
int in_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Store, AWriteThatStopsHalfWayLeavesTheOldFileAndNothingElse) {
  const TemporaryFolder folder;
  save(sample_record("a"), folder.path());
  const std::string before = read_file(folder.path() + "/a.h5");
  const int status = in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 3;
    return message_of_save(folder.path()).find("a.h5: cannot be written") != std::string::npos ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(folder.path() + "/a.h5"), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Store, AFullDiskIsNamed) {
  const TemporaryFolder folder;
  const std::string mount = "mount -t tmpfs -o size=16k none " + folder.path() + " 2>/dev/null";
  if (std::system(mount.c_str()) != 0) GTEST_SKIP() << "a small tmpfs cannot be mounted here (needs root)";
  std::string message = "saved";
  for (int i = 0; i < 20 && message == "saved"; ++i) {
    TrialRecord record = sample_record("t" + std::to_string(i));
    try {
      save(record, folder.path());
    } catch (const UserError& error) {
      message = error.what();
    }
  }
  const Folder found = load_folder(folder.path());
  std::size_t aside = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    aside += entry.path().extension() == ".tmp" ? 1u : 0u;
  }
  EXPECT_EQ(std::system(("umount " + folder.path()).c_str()), 0);
  EXPECT_NE(message.find(".h5: cannot be written, no space left on device; free some space"), std::string::npos) << message;
  EXPECT_TRUE(found.damaged.empty());
  EXPECT_EQ(aside, 0u);
}

TEST(Store, StockH5pyReadsTheFile) {
  const std::string python = "/usr/bin/python3";
  if (std::system((python + " -c 'import h5py' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "no h5py for " << python << " (apt install python3-h5py)";
  }
  const TemporaryFolder folder;
  save(sample_record("a"), folder.path());
  const std::string script = std::string(PHASOR_TEST_FOLDER) + "/read_with_h5py.py ";
  EXPECT_EQ(std::system((python + " " + script + folder.path() + "/a.h5").c_str()), 0);
  // The script leaves a dataset, a group and an attribute of its own behind: a later version's, to this reader.
  const TrialRecord loaded = load(folder.path() + "/a.h5");
  EXPECT_EQ(loaded.spec.canonical(), sample_record("a").spec.canonical());
  EXPECT_EQ(loaded.evals.size(), 3u);
}

}  // namespace
}  // namespace phasor::results
