// Guards of speed that need no clock: what a step launches, moves and allocates. The numbers are those of the day they were
// written; launches and bytes are rounded up by less than one more pass over the values of every layer takes. A change that
// needs more of something raises its bound here, in the same commit, with the reason in the message; one that needs less
// lowers it, or the next loss hides in the room.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "experiments/cost.h"
#include "experiments/trainer.h"
#include "tests/experiments/fixture.h"

namespace {
std::atomic<std::int64_t> allocations{0};

void* counted(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

// Of this program and all its libraries; the forms for arrays come here too.
void* operator new(std::size_t bytes) { return counted(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace phasor {
namespace {

struct Bounds {
  const char* name;
  const char* patch;  // over the small experiment
  std::int64_t launches, bytes, allocations, activations;  // activations: bytes of all threads
};

// Allocations that are left: three short lists in the task for every row that mqar draws.
const Bounds bounds[] = {
    {"gla selective_rope on state tracking", "{}", 536, 3190000, 0, 164000},
    {"transformer rope on mqar",
     R"({"task": {"name": "mqar", "vocabulary": 64, "train": {"rows": [200], "lengths": [32], "pairs": [4]},
                  "valid": {"rows": [20], "lengths": [32], "pairs": [4]},
                  "test": {"rows": [20], "lengths": [32], "pairs": [4]}},
         "model": {"backbone": {"name": "transformer", "heads": 2}, "encoding": {"name": "rope"}}})",
     278, 3765000, 30, 319500},
};

std::string report(const Profile& profile) {
  std::string text;
  for (const Profile::Entry& entry : profile.entries())
    text += std::string("\n  ") + entry.name + ": " + std::to_string(entry.calls) + " calls, " + std::to_string(entry.bytes) + " bytes";
  return text;
}

class Limits : public testing::TestWithParam<Bounds> {
 protected:
  Limits() : spec_(shipped_plugins()) { read_spec(spec_, small_experiment(GetParam().patch)); }
  ExperimentSpec spec_;
};

TEST_P(Limits, LaunchesAndBytesOfAStep) {
  const Profile step = count_cost(spec_).step;
  EXPECT_LE(step.total().calls, GetParam().launches) << report(step);
  EXPECT_LE(step.total().bytes, GetParam().bytes) << report(step);
}

// Pullbacks keep what they read and no more (place_of), and gradients take the memory of values that are done with.
TEST_P(Limits, MemoryOfAStep) { EXPECT_LE(count_cost(spec_).activation_bytes, GetParam().activations); }

TEST_P(Limits, AStepTakesNoMemoryOnceItsSizesAreKnown) {
  Trainer trainer(spec_);
  trainer.step();
  trainer.step();
  const std::int64_t blocks = trainer.system_blocks(), before = allocations.load();
  trainer.step();
  EXPECT_LE(allocations.load() - before, GetParam().allocations);
  EXPECT_EQ(trainer.system_blocks(), blocks);
}

INSTANTIATE_TEST_SUITE_P(Limits, Limits, testing::ValuesIn(bounds),
                         [](const auto& one) { return one.index == 0 ? "gla" : "transformer"; });

}  // namespace
}  // namespace phasor
