#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/philox.h"
#include "core/graph/tape.h"
#include "core/ops/gemm.h"
#include "core/ops/linear/linear.h"

namespace phasor {
namespace {

/// The nearest number with so many bits of mantissa, the leading one included, ties to the even one: by arithmetic.
double nearest(double x, int bits) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);  // in [1/2, 1)
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, bits)), exponent - bits);
}

std::vector<float> numbers(std::size_t count, std::uint64_t name) {
  const RandomStream random(1, Purpose::statistics, name);
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(random.uniform(i)) - 0.5f;
  return out;
}

struct Product {
  bool transpose_a, transpose_b;
  std::int64_t m, n, k, gap;  // `gap`: elements between the rows
};

/// Largest distance to the product of the operands rounded to `bits` bits of mantissa, summed in f64.
double distance(ProductPrecision precision, const Product& p, int bits) {
  const std::int64_t lda = (p.transpose_a ? p.m : p.k) + p.gap, ldb = (p.transpose_b ? p.k : p.n) + p.gap, ldc = p.n + p.gap;
  const std::vector<float> a = numbers(static_cast<std::size_t>(lda * (p.transpose_a ? p.k : p.m)), 1);
  const std::vector<float> b = numbers(static_cast<std::size_t>(ldb * (p.transpose_b ? p.n : p.k)), 2);
  std::vector<float> c = numbers(static_cast<std::size_t>(ldc * p.m), 3);
  const std::vector<float> before = c;
  gemm(precision, p.transpose_a, p.transpose_b, p.m, p.n, p.k, 1.0f, a.data(), lda, b.data(), ldb, 1.0f, c.data(), ldc);
  double largest = 0.0;
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t j = 0; j < ldc; ++j) {
      const auto at = static_cast<std::size_t>(i * ldc + j);
      double sum = static_cast<double>(before[at]);
      for (std::int64_t q = 0; q < p.k && j < p.n; ++q) {
        const auto left = static_cast<std::size_t>(p.transpose_a ? q * lda + i : i * lda + q);
        const auto right = static_cast<std::size_t>(p.transpose_b ? j * ldb + q : q * ldb + j);
        sum += nearest(static_cast<double>(a[left]), bits) * nearest(static_cast<double>(b[right]), bits);
      }
      largest = std::max(largest, std::abs(sum - static_cast<double>(c[at])));
    }
  return largest;
}

constexpr int full_bits = 24, tf32_bits = 11, bf16_bits = 8;

TEST(ProductPrecision, OperandsAreRoundedToNearestAndSumsAreNot) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true}) {
      const Product p{transpose_a, transpose_b, 19, 23, 301, 5};
      EXPECT_LT(distance(ProductPrecision::full, p, full_bits), 2e-6);
      EXPECT_LT(distance(ProductPrecision::tf32, p, tf32_bits), 2e-6);
      EXPECT_LT(distance(ProductPrecision::bf16, p, bf16_bits), 2e-6);
      // and each is far from its neighbour
      EXPECT_GT(distance(ProductPrecision::tf32, p, full_bits), 1e-4);
      EXPECT_GT(distance(ProductPrecision::bf16, p, tf32_bits), 1e-3);
    }
}

/// y, dx and dweight of a map by a weight, one after the other.
std::vector<float> passes(ProductPrecision precision) {
  Arena arena;
  Stream stream;
  stream.products = precision;
  Tape tape(arena, stream, true);
  const auto filled = [&](Shape shape, std::uint64_t name) {
    const Tensor out = tape.empty(shape);
    const std::vector<float> values = numbers(static_cast<std::size_t>(shape.size()), name);
    std::copy(values.begin(), values.end(), out.as<float>());
    return out;
  };
  const Tensor x = tape.variable(filled({6, 40}, 4)), weight = tape.variable(filled({9, 40}, 5)), dy = filled({6, 9}, 6);
  const Tensor y = ops::linear(tape, x, weight, Tensor());
  std::vector<float> out(y.as<float>(), y.as<float>() + y.size());
  const std::pair<Tensor, Tensor> seed{y, dy};
  tape.backward({&seed, 1});
  for (const Tensor& leaf : {x, weight}) {
    const Tensor gradient = tape.leaf_gradient(leaf);
    out.insert(out.end(), gradient.as<float>(), gradient.as<float>() + gradient.size());
  }
  return out;
}

TEST(ProductPrecision, HoldsForEveryProductOfAMap) {
  const std::vector<float> full = passes(ProductPrecision::full);
  for (const ProductPrecision precision : {ProductPrecision::tf32, ProductPrecision::bf16}) {
    const std::vector<float> rough = passes(precision);
    const double unit = precision == ProductPrecision::tf32 ? 0x1p-11 : 0x1p-8;
    ASSERT_EQ(rough.size(), full.size());
    int same = 0;
    for (std::size_t i = 0; i < full.size(); ++i) {
      EXPECT_NEAR(rough[i], full[i], 2.0 * unit) << i;  // at most 40 products below 1/4, each off by a unit at most
      same += rough[i] == full[i] ? 1 : 0;
    }
    EXPECT_LT(same, static_cast<int>(full.size()) / 10);
  }
}

}  // namespace
}  // namespace phasor
