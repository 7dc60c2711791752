#include "tests/cuda/emulation.h"

#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "core/cuda/chunk_tile.h"
#include "core/cuda/reduce.h"
#include "core/graph/accumulate.h"
#include "core/graph/capture.h"
#include "core/graph/total.h"
#include "core/graph/transfer.h"
#include "core/optim/kernel.h"
#include "tests/cuda/emulated_device.h"

namespace phasor {
namespace {

using cuda::Queue;

/// A kernel's output in an order.
template <class Run>
std::vector<float> in_order(unsigned order, std::size_t size, Run run) {
  emulation::set_order(order);
  std::vector<float> out(size, 0.0f);
  run(out.data());
  emulation::set_order(0);
  return out;
}

__global__ void neighbours(const float* x, float* y, bool wait) {
  __shared__ float shared[128];
  shared[threadIdx.x] = x[threadIdx.x];
  if (wait) __syncthreads();
  y[threadIdx.x] = shared[(threadIdx.x + 1) % 128];
}

TEST(Emulation, ABarrierWaitsAndAMissingOneShowsInTheOtherOrder) {
  std::vector<float> x(128);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const auto run = [&](unsigned order, bool wait) {
    return in_order(order, 128,
                    [&](float* y) { cuda::start(Queue{}, dim3(1), dim3(128), 0, neighbours, x.data(), y, wait); });
  };
  const std::vector<float> up = run(0, true);
  for (std::size_t i = 0; i < 128; ++i) EXPECT_EQ(up[i], x[(i + 1) % 128]);
  EXPECT_EQ(run(1, true), up);
  EXPECT_EQ(run(7, true), up);
  EXPECT_NE(run(1, false), run(0, false));
}

__global__ void block_totals(const float* x, float* y) {
  __shared__ float shared[32];
  const float sum = cuda::block_sum(x[cuda::thread_index()], shared);
  if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

TEST(Emulation, SumsOfBlocks) {
  std::vector<float> x(3 * 256);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17);
  for (const unsigned order : {0u, 1u, 2u, 3u}) {
    const std::vector<float> y =
        in_order(order, 3, [&](float* to) { cuda::start(Queue{}, dim3(3), dim3(256), 0, block_totals, x.data(), to); });
    for (std::size_t b = 0; b < 3; ++b) {
      float sum = 0.0f;
      for (std::size_t i = 0; i < 256; ++i) sum += x[b * 256 + i];
      EXPECT_EQ(y[b], sum) << order;
    }
  }
}

/// A strip of a warp: x y of x [16, 32] and y [32, 48] for either way in which each lies in memory, of the first 32
/// columns only where `narrow`; then that, rounded, times y once more, and what `keep` makes of it.
template <bool left_transposed, bool right_transposed>
__global__ void strip_products(const float* x, const float* y, float* product, float* again, float* kept, bool narrow) {
  using cuda::Bf16;
  constexpr int m = 16, k = 32, n = 48, width = cuda::chunk_stride(64);
  alignas(16) __shared__ Bf16 left[32 * width], right[48 * width], copy[48 * width];
  cuda::stage_rounded<left_transposed ? k : m>(left, width, left_transposed ? m : k, [&](int r, int c) {
    return left_transposed ? x[c * k + r] : x[r * k + c];
  });
  cuda::stage_rounded<right_transposed ? n : k>(right, width, right_transposed ? k : n, [&](int r, int c) {
    return right_transposed ? y[c * n + r] : y[r * n + c];
  });
  __syncthreads();
  if (cuda::warp_index() > 0) return;
  cuda::Strip<6> strip, next;
  strip.clear(), next.clear();
  strip.template add<left_transposed, right_transposed>(left, width, right, width, k, narrow ? 20 : n);
  strip.each([&](float& value, int r, int c) { product[r * n + c] = value; });
  for (int c = 0; c < 2; ++c)
    next.template add<right_transposed>(strip.left(c), right + 16 * c * (right_transposed ? 1 : width), width);
  next.each([&](float& value, int r, int c) { again[r * n + c] = value; });
  strip.template keep<left_transposed>(copy, width);
  __syncwarp();
  for (int e = static_cast<int>(threadIdx.x); e < m * n; e += 32)
    kept[e] = cuda::to_float(left_transposed ? copy[e % n * width + e / n] : copy[e / n * width + e % n]);
}

TEST(Emulation, StripsOfProducts) {
  constexpr std::size_t m = 16, k = 32, n = 48;
  std::vector<float> x(m * k), y(k * n);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7 % 11) - 5.0f;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i * 5 % 13) - 6.0f;
  const auto times_y = [&](const std::vector<float>& of, std::size_t width) {
    std::vector<float> out(m * n, 0.0f);
    for (std::size_t r = 0; r < m; ++r)
      for (std::size_t c = 0; c < n; ++c)
        for (std::size_t i = 0; i < k; ++i) out[r * n + c] += of[r * width + i] * y[i * n + c];
    return out;
  };
  const auto round = [](std::vector<float> values) {
    for (float& value : values) value = rounded<bf16_mantissa>(value);
    return values;
  };
  const std::vector<float> exact = times_y(x, k), twice = times_y(round(exact), n);
  const auto check = [&](auto kernel, unsigned order, bool narrow) {
    std::vector<float> again(m * n), kept(m * n), want = exact;
    const std::vector<float> got = in_order(order, m * n, [&](float* to) {
      cuda::start(Queue{}, dim3(1), dim3(cuda::chunk_threads), 0, kernel, x.data(), y.data(), to, again.data(),
                  kept.data(), narrow);
    });
    for (std::size_t i = 0; i < want.size(); ++i)
      if (narrow && i % n >= 32) want[i] = 0.0f;
    EXPECT_EQ(got, want);
    EXPECT_EQ(kept, round(want));
    EXPECT_EQ(again, twice);
  };
  for (const unsigned order : {0u, 1u, 2u})
    for (const bool narrow : {false, true}) {
      check(strip_products<false, false>, order, narrow);
      check(strip_products<false, true>, order, narrow);
      check(strip_products<true, false>, order, narrow);
      check(strip_products<true, true>, order, narrow);
    }
}

struct Digits {
  std::int64_t width;
  __device__ float operator()(std::int64_t r, std::int64_t i) const {
    return static_cast<float>((r * width + i) * 7 % 11);
  }
};

TEST(Emulation, SumsOfColumnsWholeAndInParts) {
  std::vector<std::byte> memory(cuda::sums_bytes, std::byte{0xff});
  const Queue queue{nullptr, nullptr, memory.data(), memory.size()};
  for (const std::int64_t width : {1, 33, 70})
    for (const std::int64_t rows : {0, 1, 65, 257, 5003}) {  // from 257 on in parts, the last of which may be short
      const auto run = [&](unsigned order) {
        return in_order(order, static_cast<std::size_t>(width), [&](float* to) {
          for (std::int64_t i = 0; i < width; ++i) to[i] = 0.5f;
          cuda::start_column_sums(queue, Digits{width}, to, rows, width);
        });
      };
      const std::vector<float> sums = run(0);
      EXPECT_EQ(run(1), sums);
      for (std::int64_t i = 0; i < width; ++i) {
        float sum = 0.5f;
        for (std::int64_t r = 0; r < rows; ++r) sum += Digits{width}(r, i);
        EXPECT_EQ(sums[static_cast<std::size_t>(i)], sum) << width << " " << rows << " " << i;
      }
    }
}

__global__ void warp_functions(float* y) {
  const auto lane = static_cast<int>(cuda::lane_index());
  float* out = y + threadIdx.x * 8;
  out[0] = static_cast<float>(__shfl_sync(~0u, lane * 10, 5));
  out[1] = static_cast<float>(__shfl_up_sync(~0u, lane, 3));
  out[2] = static_cast<float>(__shfl_down_sync(~0u, lane, 3));
  out[3] = static_cast<float>(__shfl_xor_sync(~0u, lane, 6));
  out[4] = static_cast<float>(__shfl_sync(~0u, lane, 1, 8));
  out[5] = static_cast<float>(__popc(__ballot_sync(~0u, lane % 3 == 0)));
  out[6] = static_cast<float>(__any_sync(~0u, lane == 31) * 2 + __all_sync(~0u, lane < 31));
  // The lower half alone: the others do not wait for it.
  out[7] = lane < 16 ? static_cast<float>(__shfl_down_sync(0xffffu, lane, 1, 16)) : -1.0f;
}

TEST(Emulation, WhatAWarpDoesTogether) {
  for (const unsigned order : {0u, 1u, 5u}) {
    const std::vector<float> y =
        in_order(order, 64 * 8, [](float* to) { cuda::start(Queue{}, dim3(1), dim3(64), 0, warp_functions, to); });
    for (int t = 0; t < 64; ++t) {
      const int lane = t % 32;
      const auto out = [&](int i) { return static_cast<int>(y[static_cast<std::size_t>(t * 8 + i)]); };
      EXPECT_EQ(out(0), 50);
      EXPECT_EQ(out(1), lane < 3 ? lane : lane - 3);
      EXPECT_EQ(out(2), lane > 28 ? lane : lane + 3);
      EXPECT_EQ(out(3), lane ^ 6);
      EXPECT_EQ(out(4), lane / 8 * 8 + 1);
      EXPECT_EQ(out(5), 11);
      EXPECT_EQ(out(6), 2);
      EXPECT_EQ(out(7), lane >= 16 ? -1 : (lane == 15 ? 15 : lane + 1));
    }
  }
}

__global__ void reads_unwritten(float* y, bool dynamic) {
  __shared__ float shared[4];
  y[blockIdx.x] = dynamic ? cuda::shared_memory<float>()[3] : shared[3];
  shared[3] = 1.0f;
  cuda::shared_memory<float>()[3] = 1.0f;
}

TEST(Emulation, SharedMemoryBeginsAsNaNInEveryBlock) {
  for (const bool dynamic : {false, true}) {
    const std::vector<float> y = in_order(0, 2, [&](float* to) {
      cuda::start(Queue{}, dim3(2), dim3(1), 4 * sizeof(float), reads_unwritten, to, dynamic);
    });
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  }
}

__global__ void part_waits(int* y) {
  if (threadIdx.x < 32)
    __syncthreads();
  else if (threadIdx.x < 40)
    __syncwarp(0xffu);
  if (threadIdx.x == 40) __syncwarp(0x300u);
  *y = 1;
}
__global__ void two_places() {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
}
__global__ void outsider() { __shfl_sync(0x1u, 1, 0); }
__global__ void counts(int* to) { atomicAdd(to, __syncthreads_count(threadIdx.x % 2 == 0) == 32 ? 1 : 0); }

template <class... P, class... A>
std::string fault_of(unsigned threads, void (*kernel)(P...), A... args) {
  try {
    cuda::start(Queue{}, dim3(1), dim3(threads), 0, kernel, args...);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

TEST(Emulation, FaultsAreNamed) {
  int y = 0;
  EXPECT_NE(fault_of(64, part_waits, &y).find("waits for others that do not come"), std::string::npos);
  EXPECT_NE(fault_of(64, two_places).find("different barriers"), std::string::npos);
  EXPECT_NE(fault_of(32, outsider).find("is not in the mask"), std::string::npos);
  EXPECT_NE(fault_of(2000, outsider).find("2000 threads"), std::string::npos);
  int count = 0;
  EXPECT_EQ(fault_of(64, counts, &count), "");  // and after faults it goes on working
  EXPECT_EQ(count, 64);
}

TEST(EmulatedDevice, MemoryIsClosedToTheHost) {
  EmulatedDevice device;
  auto* memory = static_cast<float*>(device.allocate(64));
  const float one = 1.0f;
  float back = 0.0f;
  device.copy_in(memory, &one, sizeof one);
  device.copy_out(&back, memory, sizeof back);
  EXPECT_EQ(back, 1.0f);
  EXPECT_DEATH(*memory = 2.0f, "the host touched memory of the device");
  device.release(memory);
}

std::string problem_with_copy(EmulatedDevice& device, const Tensor& from, const Tensor& to) {
  try {
    copy(Stream{Dtype::f64, nullptr, false, &device}, from, to);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

// A device would end the run there, or read what it should not.
TEST(EmulatedDevice, MemoryOfTheHostIsNoOperand) {
  EmulatedDevice device;
  Arena arena(&device);
  std::vector<double> table(3, 1.0);  // of a mixer, say
  const Tensor host = Tensor::borrow(table.data(), Dtype::f64, {3}), there(arena, Dtype::f64, {3});
  const Tensor other(arena, Dtype::f64, {3});
  EXPECT_EQ(problem_with_copy(device, there, other), "");
  for (const std::string& problem : {problem_with_copy(device, host, there), problem_with_copy(device, there, host)}) {
    EXPECT_NE(problem.find("copy: "), std::string::npos) << problem;
    EXPECT_NE(problem.find("memory of the host"), std::string::npos) << problem;
  }
  EXPECT_THROW(device.copy_in(table.data(), table.data(), 8), InternalError);
  EXPECT_THROW(device.copy_out(table.data(), table.data(), 8), InternalError);
  EXPECT_THROW(device.fill(table.data(), 0, 8), InternalError);
  double sum = 0.0;
  EXPECT_THROW(launch(Stream{Dtype::f64, nullptr, false, &device}, sum_squares, {there.view(), 3, &sum}, {0.0, 0}),
               InternalError);
}

TEST(EmulatedDevice, CapturesAndReplays) {
  EmulatedDevice device;
  Arena arena(&device);
  const Stream stream{Dtype::f32, nullptr, false, &device};
  const Tensor a(arena, Dtype::f32, {3}), sum(arena, Dtype::f32, {3});
  const std::vector<float> ones(3, 1.0f);
  device.copy_in(a.data(), ones.data(), 12);
  zero(stream, sum);
  device.begin_capture();
  copy(stream, a, sum, true);
  const std::shared_ptr<void> step = device.end_capture();
  std::vector<float> out(3);
  device.copy_out(out.data(), sum.data(), 12);
  EXPECT_EQ(out, std::vector<float>(3, 0.0f));
  for (int i = 0; i < 4; ++i) device.replay(step.get());
  device.copy_out(out.data(), sum.data(), 12);
  EXPECT_EQ(out, std::vector<float>(3, 4.0f));
}

TEST(EmulatedDevice, ACaptureTakesNoMemoryAndWaitsForNothing) {
  EmulatedDevice device;
  Arena arena(&device);
  const Tensor a(arena, Dtype::f32, {3});
  float number = 0.0f;
  const auto refused = [&](const auto& work, const std::string& what) {
    try {
      capture(device, work);
      ADD_FAILURE() << what;
    } catch (const InternalError& error) {
      EXPECT_NE(std::string(error.what()).find(what + " while launches are captured"), std::string::npos) << error.what();
    }
  };
  refused([&] { const Tensor more(arena, Dtype::f32, {300}); }, "memory is taken");
  refused([&] { device.copy_in(a.data(), &number, sizeof number); }, "something is copied in");
  refused([&] { device.copy_out(&number, a.data(), sizeof number); }, "something is copied out");
  refused([&] { device.synchronize(); }, "the queue is waited for");
  device.copy_in(a.data(), &number, sizeof number);  // afterwards all is as before
}

TEST(EmulatedDevice, TotalsAreThoseOfTheProcessor) {
  EmulatedDevice device;
  Arena arena(&device), host;
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const std::int64_t length : {0, 1, 255, 257, 5000}) {
      const Stream there{dtype, nullptr, false, &device}, here{dtype};
      const Tensor x(host, dtype, {length}), y(arena, dtype, {length}), sum(host, Dtype::f64, {1}), other(arena, Dtype::f64, {1});
      double expected = 3.0;
      for (std::int64_t i = 0; i < length; ++i) {
        const double value = std::cos(static_cast<double>(i)) + 0.1;
        if (dtype == Dtype::f64)
          x.as<double>()[i] = value;
        else
          x.as<float>()[i] = static_cast<float>(value);
        expected += dtype == Dtype::f64 ? value : static_cast<double>(static_cast<float>(value));
      }
      *sum.as<double>() = 3.0;
      put(&device, sum, other);
      put(&device, x, y);
      add_total(here, x, sum);
      add_total(there, y, other);
      EXPECT_NEAR(*sum.as<double>(), expected, 1e-12 * expected) << length;
      EXPECT_NEAR(*fetched(&device, other, host).as<double>(), expected, 1e-12 * expected) << length;
    }
}

TEST(EmulatedDevice, AKernelThatIsNotThereIsNamed) {
  EmulatedDevice device;
  const Kernel<int> unknown{"unknown.forward", nullptr, nullptr};
  try {
    launch(Stream{Dtype::f32, nullptr, false, &device}, unknown, 1, {0.0, 0});
    FAIL();
  } catch (const NoKernel& error) {
    EXPECT_NE(std::string(error.what()).find("f32 kernel for unknown.forward"), std::string::npos);
  }
}

}  // namespace
}  // namespace phasor
