// The CUDA kernels of every room, run by the emulation, against the cases of the room. Both orders of threads and
// blocks must give the same bits, or there is a race.

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "core/ops/gemm.h"
#include "tests/conformance/all_cases.h"
#include "tests/conformance/check_case.h"
#include "tests/cuda/emulated_device.h"

namespace phasor::ops {
namespace {

constexpr std::array covered = {CUDA_ROOMS};

bool is_covered(std::string_view room) { return std::find(covered.begin(), covered.end(), room) != covered.end(); }

struct RoomCase {
  std::string room;
  OpCase op;
};

void PrintTo(const RoomCase& at, std::ostream* out) { *out << at.op.name; }

std::vector<RoomCase> covered_cases() {
  std::vector<RoomCase> out;
  for (auto& [room, cases] : cases_by_room())
    if (is_covered(room))
      for (OpCase& op : cases) out.push_back({room, std::move(op)});
  return out;
}

class CudaOps : public testing::TestWithParam<RoomCase> {};

TEST_P(CudaOps, HoldsItsPromises) {
  use_one_thread_for_gemm();
  EmulatedDevice device;
  const auto orders = [&](int pass) { device.set_order(static_cast<unsigned>(pass)); };
  for (const std::string& fault : check_case_on(device, GetParam().op, orders))
    ADD_FAILURE() << GetParam().op.name << ": " << fault;
}

INSTANTIATE_TEST_SUITE_P(All, CudaOps, testing::ValuesIn(covered_cases()),
                         [](const testing::TestParamInfo<RoomCase>& at) { return at.param.op.name; });

// Scratch memory for one entry of the batch and not for two.
TEST(CudaAttention, TakesTheBatchInPiecesWhereScratchMemoryIsShort) {
  use_one_thread_for_gemm();
  EmulatedDevice device(cuda::sums_bytes + 4000);
  int found = 0;
  for (const auto& [room, op] : covered_cases()) {
    if (op.name != "attention_decay_slopes_window" && op.name != "attention_packed_window_decay") continue;
    ++found;
    for (const std::string& fault : check_case_on(device, op, [](int) {})) ADD_FAILURE() << op.name << ": " << fault;
  }
  EXPECT_EQ(found, 2);
}

TEST(CudaRooms, EveryRoomHasKernels) {
  std::string missing;
  for (const auto& [room, cases] : cases_by_room())
    if (!is_covered(room)) missing += " " + room;
  EXPECT_EQ(missing, "") << "cuda.cu is missing there";
}

}  // namespace
}  // namespace phasor::ops
