// The CUDA kernels of every room, run by the emulation, against the cases of the room. Both orders of threads and
// blocks must give the same bits, or there is a race.

#include <algorithm>
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/function_ref.h"
#include "core/graph/transfer.h"
#include "core/ops/gemm.h"
#include "core/ops/delta_rule/delta_rule.h"
#include "core/ops/gla/gla.h"
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
  const auto orders = [&](int pass) {
    if (pass == 1) device.leave_open();  // the host has been watched once
    device.set_order(static_cast<unsigned>(pass));
  };
  for (const std::string& fault : check_case_on(device, GetParam().op, orders))
    ADD_FAILURE() << GetParam().op.name << ": " << fault;
}

/// In double a device's delta rule has keys of at most 128 channels; the cases beyond are for bf16.
std::vector<RoomCase> full_cases() {
  std::vector<RoomCase> out = covered_cases();
  std::erase_if(out, [](const RoomCase& at) { return at.op.name.ends_with("widest_keys"); });
  return out;
}

INSTANTIATE_TEST_SUITE_P(All, CudaOps, testing::ValuesIn(full_cases()),
                         [](const testing::TestParamInfo<RoomCase>& at) { return at.param.op.name; });

/// Rooms whose products take tensor cores when a stream says bf16.
std::vector<RoomCase> rounded_cases() {
  std::vector<RoomCase> out;
  for (RoomCase& at : covered_cases())
    if (at.room == "attention" || at.room == "delta_rule" || at.room == "gla" || at.room == "linear_attention" ||
        at.room == "linear" || at.room == "head_linear" || at.room == "shared_head_linear")
      out.push_back(std::move(at));
  return out;
}

class CudaOpsInBf16 : public testing::TestWithParam<RoomCase> {};

// An operand is off by 2^-9 of itself at most, and what is made of sums of a few hundred products stays within 2 % of the
// largest. Not so where scores are in the hundreds and their exponentials off by a factor: of that case only the bits count.
TEST_P(CudaOpsInBf16, IsWithinTwoPercent) {
  use_one_thread_for_gemm();
  EmulatedDevice device;
  const auto orders = [&](int pass) {
    if (pass == 1) device.leave_open();  // the host has been watched once
    device.set_order(static_cast<unsigned>(pass));
  };
  const double tolerance = GetParam().op.name == "attention_large_scores" ? 1e3 : 0.02;
  for (const std::string& fault : check_case_in_bf16_on(device, GetParam().op, tolerance, orders))
    ADD_FAILURE() << GetParam().op.name << ": " << fault;
}

INSTANTIATE_TEST_SUITE_P(All, CudaOpsInBf16, testing::ValuesIn(rounded_cases()),
                         [](const testing::TestParamInfo<RoomCase>& at) { return at.param.op.name; });

/// Attention, when a stream asks for a library: only what a library can do goes there, and that in every respect as our own.
class CudaAttentionByLibrary : public testing::TestWithParam<RoomCase> {};

std::vector<RoomCase> attention_cases_of_the_room() {
  std::vector<RoomCase> out;
  for (RoomCase& at : covered_cases())
    if (at.room == "attention") out.push_back(std::move(at));
  return out;
}

bool is_for_a_library(const std::string& name) {
  if (name == "attention_time_0") return false;
  for (const char* part : {"_time_", "_width_8", "_width_16", "_width_24", "_width_80", "_width_128"})
    if (name.find(part) != std::string::npos) return true;
  return name == "attention_width_256" || name == "attention_large_scores" || name == "attention_grouped_by_eights" ||
         name == "attention_not_causal" || name == "attention_cross";
}

TEST_P(CudaAttentionByLibrary, IsWithinTwoPercentWhereItCan) {
  EmulatedDevice device;
  const auto orders = [&](int pass) {
    if (pass == 1) device.leave_open();  // the host has been watched once
    device.set_order(static_cast<unsigned>(pass));
  };
  const std::string& name = GetParam().op.name;
  for (const std::string& fault :
       check_case_in_bf16_on(device, GetParam().op, name == "attention_large_scores" ? 1e3 : 0.02, orders, true))
    ADD_FAILURE() << name << ": " << fault;
  EXPECT_EQ(device.attention_passes(), is_for_a_library(name) ? 2 * 3 : 0);
}

INSTANTIATE_TEST_SUITE_P(All, CudaAttentionByLibrary, testing::ValuesIn(attention_cases_of_the_room()),
                         [](const testing::TestParamInfo<RoomCase>& at) { return at.param.op.name; });


/// A pass in bf16 over 70 steps of one head of width 8, with a document that begins at 50 and gates of which some are closed.
struct GatedPass {
  static constexpr std::int64_t time = 70, begin = 50, width = 8;
  EmulatedDevice device;
  Arena arena{&device}, host;
  Tape tape{arena, {Dtype::f32, nullptr, false, &device, ProductPrecision::bf16}, true};
  Tensor starts;

  GatedPass() {
    use_one_thread_for_gemm();
    const Tensor from(host, Dtype::i32, {1, time});
    for (std::int64_t t = 0; t < time; ++t) from.as<std::int32_t>()[t] = t < begin ? 0 : begin;
    starts = tape.empty({1, time}, Dtype::i32);
    put(&device, from, starts);
  }
  Tensor input(const Shape& shape, FunctionRef<float(std::int64_t)> value) {
    const Tensor from(host, Dtype::f32, shape), to = tape.empty(shape);
    for (std::int64_t i = 0; i < shape.size(); ++i) from.as<float>()[i] = value(i);
    put(&device, from, to);
    return tape.variable(to);
  }
  Tensor waves(int seed) {
    return input({1, time, 1, width}, [seed](std::int64_t i) { return std::sin(static_cast<float>(i * seed)); });
  }
  /// The gradient at `gates`, which are minus infinity where `closed`; nothing comes through those, through the first step of
  /// a document and the first of all.
  void expect_zeros(const Tensor& o, const Tensor& seed, const Tensor& gates, FunctionRef<bool(std::int64_t)> closed) {
    const std::pair<Tensor, Tensor> start{o, seed};
    tape.backward({&start, 1});
    const Tensor gradient = fetched(&device, tape.leaf_gradient(gates), host);
    const std::int64_t per_step = gradient.size() / time;
    for (std::int64_t i = 0; i < gradient.size(); ++i)
      EXPECT_EQ(gradient.as<float>()[i] == 0.0f, closed(i) || i / per_step == begin || i / per_step == 0) << i;
  }
};

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

// The gradient of a gate of minus infinity, and of one where a document begins, has no rounding error.
TEST(CudaGla, NothingComesThroughAClosedGateInBf16) {
  GatedPass pass;
  const auto closed = [](std::int64_t i) { return i / GatedPass::width != GatedPass::begin && i % 9 == 4; };
  const Tensor q = pass.waves(3), k = pass.waves(5), v = pass.waves(7);
  const Tensor gates = pass.input({1, GatedPass::time, 1, GatedPass::width}, [&](std::int64_t i) { return closed(i) ? minus_infinity : -0.1f; });
  pass.expect_zeros(gla(pass.tape, q, k, v, gates, 1.0, {}, false, 0, pass.starts).o, v, gates, closed);
}

TEST(CudaDeltaRule, NothingComesThroughAClosedGateInBf16) {
  GatedPass pass;
  const auto closed = [](std::int64_t t) { return t % 9 == 4; };  // one in the middle of every chunk, too
  const Tensor q = pass.waves(3), k = pass.waves(5), v = pass.waves(7);
  const Tensor beta = pass.input({1, GatedPass::time, 1}, [](std::int64_t) { return 0.2f; });
  const Tensor gates = pass.input({1, GatedPass::time, 1}, [&](std::int64_t t) { return closed(t) ? minus_infinity : -0.1f; });
  pass.expect_zeros(delta_rule(pass.tape, q, k, v, beta, gates, 1.0, {}, false, 0, pass.starts).o, v, gates, closed);
}

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

// Sums of runs for pieces of 32 tokens have no room in double; of 128 they do.
TEST(CudaEmbedding, TakesLongerPiecesWhereScratchMemoryIsShort) {
  use_one_thread_for_gemm();
  constexpr std::size_t sorted = 4 * (2 * 2100 + 3 * 256);
  EmulatedDevice device(cuda::sums_bytes + sorted + 1000);
  int found = 0;
  for (const auto& [room, op] : covered_cases()) {
    if (op.name != "embedding_long_runs") continue;
    ++found;
    for (const std::string& fault : check_case_on(device, op, [](int) {})) ADD_FAILURE() << op.name << ": " << fault;
  }
  EXPECT_EQ(found, 1);
}

TEST(CudaRooms, EveryRoomHasKernels) {
  std::string missing;
  for (const auto& [room, cases] : cases_by_room())
    if (!is_covered(room)) missing += " " + room;
  EXPECT_EQ(missing, "") << "cuda.cu is missing there";
}

}  // namespace
}  // namespace phasor::ops
