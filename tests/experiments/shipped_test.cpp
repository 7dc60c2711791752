#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "experiments/cost.h"
#include "experiments/memory.h"
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

TEST(ShippedExperiments, TheLeastMemoryIsAPartOfWhatAStepTakes) {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(PHASOR_EXPERIMENTS)) {
    if (entry.path().extension() != ".json") continue;
    for (const char* optimizer : {"adamw", "sgd"}) {
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      Document document = Document::parse(text.str(), entry.path().string());
      document.value()["optimizer"] = Json::object();
      document.value()["optimizer"]["name"] = optimizer;
      ExperimentSpec spec(shipped_plugins());
      spec.read(document);
      const MemoryNeed least = least_memory(spec);
      if (least.bytes() > 2e9) continue;
      ++files;
      const Cost cost = count_cost(spec);
      EXPECT_EQ(least.parameter_bytes, static_cast<double>(cost.parameter_bytes)) << entry.path();
      EXPECT_EQ(least.gradient_bytes, static_cast<double>(cost.gradient_bytes)) << entry.path();
      EXPECT_EQ(least.optimizer_bytes, static_cast<double>(cost.optimizer_bytes)) << entry.path();
      EXPECT_LE(least.activation_bytes, static_cast<double>(cost.activation_bytes)) << entry.path();
      EXPECT_GT(64.0 * least.bytes(), static_cast<double>(cost.bytes())) << entry.path();
    }
  }
  EXPECT_GE(files, 16);
}

}  // namespace
}  // namespace phasor
