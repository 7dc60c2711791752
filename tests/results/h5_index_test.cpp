#include "results/h5_index.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "results/files.h"
#include "results/h5.h"
#include "results/store.h"
#include "tests/results/folder.h"

namespace phasor::results::h5 {
namespace {

std::string image_of(const TrialRecord& record) {
  Writer file;
  write_record(file, record);
  return file.image();
}

/// What a reader makes of an image: its record as bytes; empty when it is refused.
std::string read_again(const std::string& image) {
  try {
    return image_of(read_record(Reader(image)));
  } catch (const Failure&) {
  } catch (const UserError&) {
  }
  return "";
}

/// The same image for the library, and one that the index does not know.
std::string for_library(const std::string& image) { return image + " "; }

TEST(Index, WhatWasWrittenIsReadWithoutTheLibrary) {
  for (int i = 0; i < 300; ++i) {
    TrialRecord record = sample_record("trial-" + std::to_string(i), 1 + i);
    if (i % 3 == 0) record.evals.clear();
    if (i % 5 == 0) record.message.clear();
    for (int k = 0; k < i % 40; ++k) record.summary.emplace_back("more." + std::to_string(k), k);
    const std::string image = image_of(record);
    const Reader file(image);
    EXPECT_EQ(image_of(read_record(file)), image);
    EXPECT_FALSE(file.asks_library()) << i;
  }
}

TEST(Index, TheLibraryReadsTheSame) {
  const std::string image = image_of(sample_record("a", 500));
  const Reader file(for_library(image));
  EXPECT_TRUE(file.asks_library());
  EXPECT_EQ(image_of(read_record(file)), image);
}

TEST(Index, WhatOthersAddedGoesToTheLibrary) {
  Writer file;
  write_record(file, sample_record("a"));
  for (int i = 0; i < 20; ++i) file.attribute("more." + std::to_string(i), i);  // no longer in the header
  file.group("others");
  for (int i = 0; i < 20; ++i) file.column("others/" + std::to_string(i), std::vector<double>{1.0 * i});
  const std::string image = file.image();
  EXPECT_FALSE(Index::of(image));
  const Reader reader(image);
  EXPECT_TRUE(reader.asks_library());
  EXPECT_EQ(image_of(read_record(reader)), image_of(sample_record("a")));
  EXPECT_EQ(reader.doubles("others/17"), std::vector<double>{17.0});
  EXPECT_EQ(reader.integer_attribute("more.19"), 19);
  EXPECT_TRUE(reader.has("others/3"));
  EXPECT_FALSE(reader.has("others/20"));
  EXPECT_FALSE(reader.has_attribute("more.20"));
}

TEST(Index, AbsentAndMistakenThingsGetTheLibrarysWords) {
  const std::string image = image_of(sample_record("a"));
  const auto words = [](const std::string& bytes, const auto& ask) -> std::string {
    try {
      ask(Reader(bytes));
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "taken";
  };
  const auto compare = [&](const std::string& expected, const auto& ask) {
    EXPECT_EQ(words(image, ask), expected);
    EXPECT_EQ(words(for_library(image), ask), expected);
  };
  compare("damaged: cannot open evals/nothing", [](const Reader& file) { return file.doubles("evals/nothing"); });
  compare("evals/value has another type than the layout says", [](const Reader& file) { return file.integers("evals/value"); });
  compare("evals/split has another type than the layout says", [](const Reader& file) { return file.doubles("evals/split"); });
  compare("damaged: cannot open attribute nothing", [](const Reader& file) { return file.text_attribute("nothing"); });
  compare("attribute id has another type than the layout says", [](const Reader& file) { return file.integer_attribute("id"); });
  compare("damaged: evals/value does not match its digest", [](const Reader& file) { return file.floats("evals/value"); });
  compare("damaged: steps/clipped does not match its digest", [](const Reader& file) { return file.integers("steps/clipped"); });
}

TEST(Index, AChangedByteIsRefusedOrHoldsNothing) {
  const std::string whole = image_of(sample_record("a", 3));
  ASSERT_EQ(read_again(whole), whole);
  std::size_t understood = 0;
  for (std::size_t at = 0; at < whole.size(); at += 3) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at * 3 % 8)));
    if (!Index::of(bytes)) continue;  // then the library has the word, see damage_test.cpp
    ++understood;
    const std::string again = read_again(bytes);
    if (!again.empty()) {
      ASSERT_EQ(again, whole) << "byte " << at;
    }
  }
  EXPECT_GT(understood, 0U);  // values are outside of the headers, their digests refuse them later
  EXPECT_LT(understood, whole.size() / 6);
}

/// Every header of an image: where it starts, and how many bytes its checksum is of. Headers are as Writer makes them.
std::vector<std::pair<std::size_t, std::size_t>> guarded_parts(const std::string& image) {
  std::vector<std::pair<std::size_t, std::size_t>> parts = {{0, 44}};
  for (std::size_t at = 0; at + 8 < image.size(); ++at) {
    const std::string_view name = std::string_view(image).substr(at, 4);
    if (name != "OHDR" && name != "OCHK") continue;
    for (std::size_t size = 4; at + size + 4 <= image.size(); ++size) {
      std::uint32_t stored = 0;
      std::memcpy(&stored, image.data() + at + size, sizeof stored);
      if (stored != checksum(std::string_view(image).substr(at, size))) continue;
      parts.emplace_back(at, size);
      break;
    }
  }
  return parts;
}

/// Whoever wrote a false header with a true checksum gets an answer all the same: no crash, no endless walk.
TEST(Index, FalseHeadersWithTrueChecksums) {
  const std::string whole = image_of(sample_record("a", 3));
  const auto parts = guarded_parts(whole);
  ASSERT_GT(parts.size(), 20U);
  std::size_t understood = 0, tried = 0;
  for (const auto& [start, size] : parts) {
    for (std::size_t at = start; at < start + size; ++at) {
      for (const int value : {0x00, 0x01, 0x06, 0x10, 0x7f, 0xff}) {
        std::string bytes = whole;
        bytes[at] = static_cast<char>(value);
        const std::uint32_t sum = checksum(std::string_view(bytes).substr(start, size));
        std::memcpy(bytes.data() + start + size, &sum, sizeof sum);
        ++tried;
        const auto index = Index::of(bytes);
        if (!index) continue;
        ++understood;
        for (const char* path : {"spec", "steps/loss", "evals/metric"}) {
          const Index::Values* values = index->column(path);
          EXPECT_TRUE(values == nullptr || values->width * values->count == values->bytes.size());
        }
      }
    }
  }
  EXPECT_GT(tried, 10000U);
  EXPECT_GT(understood, 0U);
  EXPECT_LT(understood, tried);
}

/// A group that holds itself: patched into the header, with the checksum that fits.
TEST(Index, LinksInACircleEnd) {
  Writer file;
  file.group("steps");
  file.column("steps/loss", std::vector<double>{1.0});
  std::string image = file.image();
  const auto parts = guarded_parts(image);
  std::uint64_t root = 0;
  std::memcpy(&root, image.data() + 36, sizeof root);
  const std::string name("\x04loss", 5);
  const std::size_t link = image.find(name) + name.size();
  ASSERT_LT(link, image.size());
  std::memcpy(image.data() + link, &root, sizeof root);
  for (const auto& [start, size] : parts) {
    if (link < start || link >= start + size) continue;
    const std::uint32_t sum = checksum(std::string_view(image).substr(start, size));
    std::memcpy(image.data() + start + size, &sum, sizeof sum);
    EXPECT_FALSE(Index::of(image));
    return;
  }
  FAIL() << "no header holds the link";
}

TEST(Index, AFolderIsReadBySeveralThreadsInOrder) {
  const TemporaryFolder folder;
  for (int i = 0; i < 200; ++i) {
    const std::string id = "trial-" + std::to_string(1000 + i);
    std::ofstream(folder.path() + "/" + id + ".h5", std::ios::binary) << image_of(sample_record(id, 5 + i));
  }
  std::filesystem::resize_file(folder.path() + "/trial-1100.h5", 900);
  std::ofstream(folder.path() + "/trial-1150.h5", std::ios::app) << " ";  // for the library, whatever thread meets it
  for (const Steps steps : {Steps::kept, Steps::dropped}) {
    const Folder found = load_folder(folder.path(), steps);
    ASSERT_EQ(found.records.size(), 199U);
    ASSERT_EQ(found.damaged.size(), 1U);
    EXPECT_EQ(found.damaged[0].file, folder.path() + "/trial-1100.h5");
    for (std::size_t i = 0; i < found.records.size(); ++i) {
      const std::size_t number = i < 100 ? i : i + 1;
      EXPECT_EQ(found.records[i].id, "trial-" + std::to_string(1000 + number));
      EXPECT_EQ(found.records[i].steps.size(), steps == Steps::kept ? 5 + number : 0);
    }
  }
}

TEST(Index, DroppedStepsAreChecked) {
  const TemporaryFolder folder;
  TrialRecord record = sample_record("a");
  record.steps[7].loss = 0.8414709848;  // nowhere else
  save(record, folder.path());
  std::string bytes = read_file(folder.path() + "/a.h5");
  const std::size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&record.steps[7].loss), sizeof(double)));
  ASSERT_NE(at, std::string::npos);
  bytes[at] = 1;
  std::ofstream(folder.path() + "/a.h5", std::ios::binary) << bytes;
  const Folder found = load_folder(folder.path(), Steps::dropped);
  ASSERT_EQ(found.damaged.size(), 1U);
  EXPECT_EQ(found.damaged[0].reason, "damaged: steps/loss does not match its digest");
}

}  // namespace
}  // namespace phasor::results::h5
