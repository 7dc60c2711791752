// What no op's cases reach: updates of optimisers, sums of squares, rounding, copies, products of rounded operands. Those of the device
// against those of the processor, in two orders of threads and blocks.

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/graph/accumulate.h"
#include "core/graph/transfer.h"
#include "core/ops/gemm.h"
#include "core/ops/head_linear/kernel.h"
#include "core/ops/linear/kernel.h"
#include "core/ops/shared_head_linear/kernel.h"
#include "core/optim/kernel.h"
#include "tests/cuda/emulated_device.h"

namespace phasor {
namespace {

/// Some flat tensors, on the processor and on a device.
template <class T>
struct Flat {
  std::vector<std::vector<T>> host;
  std::vector<View> views;  // of `host`
  std::vector<Tensor> on_device;
  EmulatedDevice* device;

  Flat(Arena& arena, EmulatedDevice& to, std::size_t tensors, std::int64_t count) : device(&to) {
    std::mt19937 random(17);
    std::normal_distribution<double> normal;
    for (std::size_t i = 0; i < tensors; ++i) {
      auto& values = host.emplace_back(static_cast<std::size_t>(count));
      for (T& value : values) value = static_cast<T>(normal(random));
      on_device.emplace_back(arena, sizeof(T) == 4 ? Dtype::f32 : Dtype::f64, Shape{count});
    }
    for (auto& values : host) views.push_back({values.data(), count});
    send();
  }
  void send() {
    for (std::size_t i = 0; i < host.size(); ++i)
      device->copy_in(on_device[i].data(), host[i].data(), host[i].size() * sizeof(T));
  }
  std::vector<T> back(std::size_t i) const {
    std::vector<T> values(host[i].size());
    device->copy_out(values.data(), on_device[i].data(), values.size() * sizeof(T));
    return values;
  }
  Stream stream(bool there) const {
    return {sizeof(T) == 4 ? Dtype::f32 : Dtype::f64, nullptr, false, there ? device : nullptr};
  }
};

/// Runs `work(stream, views)` on the device, upwards and downwards, and on the processor; compares every tensor.
template <class T, class Work>
void compare(std::size_t tensors, std::int64_t count, double tolerance, Work work) {
  EmulatedDevice device;
  Arena arena(&device);
  Flat<T> flat(arena, device, tensors, count);
  for (T& value : flat.host.back()) value = std::abs(value);  // a second moment
  std::vector<View> views;
  for (const Tensor& tensor : flat.on_device) views.push_back(tensor.view());
  std::vector<std::vector<T>> upwards;
  for (const unsigned order : {0u, 1u}) {
    flat.send();
    device.set_order(order);
    work(flat.stream(true), views);
    device.set_order(0);
    for (std::size_t i = 0; i < tensors; ++i) {
      if (order == 0)
        upwards.push_back(flat.back(i));
      else
        EXPECT_EQ(upwards[i], flat.back(i)) << "tensor " << i << ": other bits in the other order";
    }
  }
  work(flat.stream(false), flat.views);
  for (std::size_t i = 0; i < tensors; ++i)
    for (std::size_t at = 0; at < upwards[i].size(); ++at)
      ASSERT_NEAR(upwards[i][at], flat.host[i][at], tolerance * (1.0 + std::abs(static_cast<double>(flat.host[i][at]))))
          << "tensor " << i << ", element " << at;
}

template <class T>
class CudaUpdates : public testing::Test {
 protected:
  static constexpr double tolerance = sizeof(T) == 4 ? 1e-6 : 1e-14;
};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(CudaUpdates, Precisions);

// Every update leaves what stands before `begin` and behind it alone, which the comparison sees.
constexpr std::int64_t size = 1000, begin = 37, count = 900;

/// In the memory of a stream.
class Numbers {
 public:
  Numbers(const Stream& stream, UpdateNumbers numbers) : memory_(stream.device), there_(memory_, Dtype::f64, {5}) {
    put(stream.device, Tensor::borrow(&numbers, Dtype::f64, {5}), there_);
  }
  UpdateNumbers* get() const { return static_cast<UpdateNumbers*>(there_.data()); }
  UpdateNumbers back() const {
    Arena memory;
    return *static_cast<UpdateNumbers*>(fetched(memory_.device(), there_, memory).data());
  }

 private:
  Arena memory_;
  Tensor there_;
};

TYPED_TEST(CudaUpdates, AdamW) {
  for (const bool decays : {false, true})
    compare<TypeParam>(4, size, this->tolerance, [&](const Stream& stream, const std::vector<View>& v) {
      const Numbers numbers(stream, {0.0, 0.7, 0.9, 0.02, 3.0});
      launch(stream, adamw_update, {v[0], v[1], v[2], v[3], begin, count, numbers.get(), decays, 0.9, 0.999, 1e-8}, {0.0, 0});
    });
}

TYPED_TEST(CudaUpdates, ClipFactorIsThatOfTheProcessor) {
  EmulatedDevice device;
  Arena arena(&device);
  const Stream there{Dtype::f32, nullptr, false, &device}, here{Dtype::f32};
  const double limits[] = {0.0, 1.0, 100.0}, nan = std::numeric_limits<double>::quiet_NaN();
  for (const double last : {0.25, 1e300 * 1e300, nan})
    for (const double limit : limits) {
      std::vector<double> squares{4.0, 2.0, last};
      const Tensor on_host = Tensor::borrow(squares.data(), Dtype::f64, {3}), on_device(arena, Dtype::f64, {3});
      put(&device, on_host, on_device);
      const Numbers a(here, {}), b(there, {});
      launch(here, clip_factor, {on_host.as<double>(), 3, limit, a.get()}, {0.0, 0});
      launch(there, clip_factor, {on_device.as<double>(), 3, limit, b.get()}, {0.0, 0});
      const double norm = std::sqrt(4.0 + 2.0 + last), expected = limit > 0.0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0;
      for (const UpdateNumbers& found : {a.back(), b.back()}) {
        EXPECT_TRUE(found.grad_norm == norm || (std::isnan(found.grad_norm) && std::isnan(norm))) << limit;
        EXPECT_EQ(found.clip, expected) << limit;
      }
    }
}

TYPED_TEST(CudaUpdates, Sgd) {
  for (const bool momentum : {false, true})
    for (const bool nesterov : {false, true})
      compare<TypeParam>(3, size, this->tolerance, [&](const Stream& stream, const std::vector<View>& v) {
        const Numbers numbers(stream, {0.0, 0.7, 1.0, 0.1, 0.0});
        launch(stream, sgd_update, {v[0], v[1], momentum ? v[2] : View(), begin, count, numbers.get(), 0.01, 0.9, nesterov},
               {0.0, 0});
      });
}

TYPED_TEST(CudaUpdates, RoundingToBf16GivesTheSameBits) {
  EmulatedDevice device;
  Arena arena(&device);
  Flat<TypeParam> flat(arena, device, 1, size);
  auto& x = flat.host[0];
  using Limits = std::numeric_limits<TypeParam>;
  x[begin] = TypeParam(1) + TypeParam(1) / 256;  // ties, to even
  x[begin + 1] = TypeParam(1) + TypeParam(3) / 256;
  x[begin + 2] = Limits::max();
  x[begin + 3] = -Limits::infinity();
  x[begin + 4] = TypeParam(-0.0);
  flat.send();
  launch(flat.stream(true), round_bf16, {flat.on_device[0].view(), begin, count}, {0.0, 0});
  launch(flat.stream(false), round_bf16, {flat.views[0], begin, count}, {0.0, 0});
  EXPECT_EQ(flat.back(0), x);
  EXPECT_EQ(x[begin], TypeParam(1));
  EXPECT_EQ(x[begin + 1], TypeParam(1) + TypeParam(1) / 64);
  x[begin] = Limits::quiet_NaN();
  flat.send();
  launch(flat.stream(true), round_bf16, {flat.on_device[0].view(), begin, count}, {0.0, 0});
  EXPECT_TRUE(std::isnan(flat.back(0)[begin]));
}

TYPED_TEST(CudaUpdates, SumsOfSquaresOfEveryLength) {
  for (const std::int64_t length : {0, 1, 31, 256, 4095, 4097, 70000}) {
    EmulatedDevice device;
    Arena arena(&device);
    Flat<TypeParam> flat(arena, device, 1, length);
    const Tensor sum(arena, Dtype::f64, {1});
    double expected = 2.0, upwards = 0.0;
    for (const TypeParam value : flat.host[0]) expected += static_cast<double>(value) * static_cast<double>(value);
    for (const unsigned order : {0u, 1u}) {
      const double there = 2.0;  // added to
      device.copy_in(sum.data(), &there, sizeof there);
      device.set_order(order);
      launch(flat.stream(true), sum_squares, {flat.on_device[0].view(), length, static_cast<double*>(sum.data())},
             {0.0, 0});
      device.set_order(0);
      double got = 0.0;
      device.copy_out(&got, sum.data(), sizeof got);
      EXPECT_NEAR(got, expected, 1e-13 * expected) << length;
      if (order == 0) upwards = got;
      EXPECT_EQ(got, upwards) << length;
    }
  }
}

TYPED_TEST(CudaUpdates, CopiesSumsAndZerosOfRows) {
  EmulatedDevice device;
  Arena arena(&device);
  Flat<TypeParam> flat(arena, device, 3, 60);
  const Stream stream = flat.stream(true);
  const Tensor a = flat.on_device[0].reshape({6, 10}).columns(1, 7),
               b = flat.on_device[1].reshape({6, 10}).columns(2, 7),
               out = flat.on_device[2].reshape({6, 10}).columns(3, 7);
  auto expected = flat.host[2];
  const auto check = [&](auto value) {
    for (std::size_t r = 0; r < 6; ++r)
      for (std::size_t i = 0; i < 7; ++i)
        expected[r * 10 + 3 + i] =
            value(expected[r * 10 + 3 + i], flat.host[0][r * 10 + 1 + i], flat.host[1][r * 10 + 2 + i]);
    EXPECT_EQ(flat.back(2), expected);
  };
  add(stream, a, b, out);
  check([](TypeParam, TypeParam x, TypeParam y) { return x + y; });
  copy(stream, a, out, true);
  check([](TypeParam there, TypeParam x, TypeParam) { return there + x; });
  copy(stream, b, out, false);
  check([](TypeParam, TypeParam, TypeParam y) { return y; });
  zero(stream, out);
  check([](TypeParam, TypeParam, TypeParam) { return TypeParam(0); });
}

// The library's product is that of the processor here, so both sides agree to the last bits of f32 if a kernel hands on
// the precision that it was given; else they differ by 1e-3. Matrices [12, 12], in two heads of 6.
TEST(CudaProducts, RoundTheirOperandsAsTheyAreTold) {
  use_one_thread_for_gemm();
  constexpr std::int64_t n = 12, heads = 2, d = n / heads;
  const auto wide = [](const View& flat) { return View{flat.data, n}; };
  const auto narrow = [](const View& flat) { return View{flat.data, d}; };
  const View none{};
  for (const ProductPrecision precision : {ProductPrecision::full, ProductPrecision::tf32, ProductPrecision::bf16}) {
    compare<float>(5, n * n, 1e-6, [&](const Stream& stream, const std::vector<View>& v) {
      const View x = wide(v[0]), w = wide(v[1]), y = wide(v[2]);
      launch(stream, ops::linear_forward, {x, w, none, y, n, n, n, precision}, {0.0, 0});
      launch(stream, ops::linear_backward, {x, w, y, wide(v[3]), wide(v[4]), none, n, n, n, false, true, precision}, {0.0, 0});
    });
    compare<float>(5, n * n, 1e-6, [&](const Stream& stream, const std::vector<View>& v) {
      const View x = wide(v[0]), w = narrow(v[1]), y = wide(v[2]);
      launch(stream, ops::head_linear_forward, {x, w, y, n, heads, d, d, precision}, {0.0, 0});
      launch(stream, ops::head_linear_backward, {x, w, y, wide(v[3]), narrow(v[4]), n, heads, d, d, false, precision}, {0.0, 0});
    });
    compare<float>(5, n * n, 1e-6, [&](const Stream& stream, const std::vector<View>& v) {
      const View x = wide(v[0]), w = narrow(v[1]), y = wide(v[2]);
      launch(stream, ops::shared_head_linear_forward, {x, w, none, y, n, heads, d, d, precision}, {0.0, 0});
      launch(stream, ops::shared_head_linear_backward,
             {x, w, y, wide(v[3]), narrow(v[4]), none, n, heads, d, d, false, precision}, {0.0, 0});
    });
  }
}

}  // namespace
}  // namespace phasor
