// The graphs that cuDNN is given, on any machine: it makes its plans for an H200 that is not there. It picks engines, compiles
// kernels and says how much memory they want; tests/cuda/driver.cpp pretends to load them. Nothing runs.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <string>

#include "core/base/error.h"
#include "core/cuda/sdpa.h"

namespace phasor::cuda {
namespace {

/// As cuDNN writes down a device; numbers of an H200.
constexpr const char* h200 = R"({"deviceName": "NVIDIA H200", "cudaDeviceId": 0, "deviceVer": 900, "driverVer": 13000,
  "totalGlobalMem": 150000000000, "multiProcessorCount": 132, "warpSize": 32, "maxGridSize": [2147483647, 65535, 65535],
  "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
  "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024,
  "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1, "smClockRateKHz": 1980000,
  "memClockRateKHz": 3201000, "l2CacheSize": 62914560})";

class Plans : public testing::Test {
 protected:
  void SetUp() override {
    // cuDNN asks for libcuda.so.1 and is given what the process has of that name.
    ASSERT_NE(dlopen(PRETENDED_DRIVER, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
    std::string reason;
    sdpa_ = open_cudnn(reason, h200);
    if (sdpa_ == nullptr) GTEST_SKIP() << reason;
  }
  std::int64_t bytes(const SdpaSizes& sizes, bool backward) { return sdpa_->memory({}, sizes, backward); }

  std::unique_ptr<Sdpa> sdpa_;
};

constexpr SdpaSizes usual{8, 2048, 2048, 16, 1, 64, 64, true, 0.125f};

SdpaSizes with(void (*change)(SdpaSizes&)) {
  SdpaSizes sizes = usual;
  change(sizes);
  return sizes;
}

// The scores of a pass are batch * heads * time * keys numbers, 2^29 here, and the forward pass keeps none.
TEST_F(Plans, TheForwardPassKeepsNoScores) { EXPECT_LE(bytes(usual, false), 4096); }

// The same bits every time, on a Hopper, are bought with dz in bf16; a backward pass that adds dq atomically wants less. Beside
// it: f32 numbers per query and head.
TEST_F(Plans, TheBackwardPassKeepsDzAndAddsNothingAtomically) {
  const std::int64_t scores = std::int64_t{8} * 16 * 2048 * 2048;
  EXPECT_GE(bytes(usual, true), 2 * scores);
  EXPECT_LE(bytes(usual, true), 2 * scores + 8 * 16 * 2048 * 4 + 4096);
}

TEST_F(Plans, WhatAttentionAsksForHasPlans) {
  for (const bool backward : {false, true}) {
    for (const std::int64_t width : {8, 256}) {
      SdpaSizes sizes = usual;
      sizes.batch = 2;
      sizes.time = sizes.keys = 138;
      sizes.key_width = sizes.value_width = width;
      EXPECT_NO_THROW(bytes(sizes, backward)) << width;
    }
    EXPECT_NO_THROW(bytes(with([](SdpaSizes& s) { s.time = s.keys = 1; }), backward));
    EXPECT_NO_THROW(bytes(with([](SdpaSizes& s) { s.causal = false, s.time = 3, s.keys = 70; }), backward));
    EXPECT_NO_THROW(bytes(with([](SdpaSizes& s) { s.heads = 4, s.group = 3, s.value_width = 72; }), backward));
  }
}

TEST_F(Plans, ARefusalSaysWhatWasAskedAndWhatToDo) {
  try {
    bytes(with([](SdpaSizes& s) { s.key_width = 63; }), false);
    FAIL() << "cuDNN takes a width of 63 now: attention() may ask for more";
  } catch (const UserError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("[8, 2048, 16, 63]"), std::string::npos) << text;
    EXPECT_NE(text.find("cuDNN"), std::string::npos) << text;
    EXPECT_NE(text.find("expected own"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace phasor::cuda
