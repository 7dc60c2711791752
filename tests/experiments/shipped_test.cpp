#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "tests/experiments/fixture.h"

namespace phasor {
namespace {

TEST(ShippedExperiments, AreReadWithoutAProblem) {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(PHASOR_EXPERIMENTS)) {
    if (entry.path().extension() != ".json") continue;
    ++files;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    Document document = Document::parse(text.str(), entry.path().string());
    ExperimentSpec spec(shipped_plugins());
    spec.read(document);
    EXPECT_NO_THROW(document.require_none());
    for (const Problem& problem : document.problems())
      ADD_FAILURE() << entry.path() << " " << problem.path << ": " << problem.message;
    if (!document.problems().empty()) continue;
    EXPECT_FALSE(spec.note.empty()) << entry.path();
    EXPECT_GT(spec.parameters(), 0) << entry.path();
    // Selection needs rows of its own.
    const auto task = spec.make_task();
    EXPECT_FALSE(task->slices(Split::valid).empty()) << entry.path();
  }
  EXPECT_GE(files, 8);
}

}  // namespace
}  // namespace phasor
