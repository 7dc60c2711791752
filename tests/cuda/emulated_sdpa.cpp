#include "tests/cuda/emulated_sdpa.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "core/base/rounding.h"
#include "tests/cuda/emulation.h"

namespace phasor {

namespace {

using cuda::SdpaOperands;
using cuda::SdpaSizes;

/// Packed vectors in bf16: [batch, count, heads, width].
struct Vectors {
  std::uint16_t* data;
  std::int64_t count, heads, width;
  double get(std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t i) const {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(data[place(b, t, h, i)]) << 16));
  }
  void set(std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t i, double x) const {
    data[place(b, t, h, i)] =
        static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(rounded<bf16_mantissa>(static_cast<float>(x))) >> 16);
  }
  std::int64_t place(std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t i) const {
    return ((b * count + t) * heads + h) * width + i;
  }
};

struct Attention {
  SdpaSizes s;
  Vectors q, k, v, o, d_o, dq, dk, dv;
  float* lse;

  Attention(const SdpaSizes& sizes, const SdpaOperands& a)
      : s(sizes), q(of(a.q, s.time, heads(), s.key_width)), k(of(a.k, s.keys, s.heads, s.key_width)),
        v(of(a.v, s.keys, s.heads, s.value_width)), o(of(a.o, s.time, heads(), s.value_width)),
        d_o(of(a.d_o, s.time, heads(), s.value_width)), dq(of(a.dq, s.time, heads(), s.key_width)),
        dk(of(a.dk, s.keys, s.heads, s.key_width)), dv(of(a.dv, s.keys, s.heads, s.value_width)),
        lse(static_cast<float*>(a.lse)) {}

  std::int64_t heads() const { return s.heads * s.group; }
  static Vectors of(void* data, std::int64_t count, std::int64_t heads, std::int64_t width) {
    return {static_cast<std::uint16_t*>(data), count, heads, width};
  }
  std::int64_t seen(std::int64_t t) const { return s.causal ? t + 1 : s.keys; }
  double score(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t j) const {
    double sum = 0.0;
    for (std::int64_t i = 0; i < s.key_width; ++i) sum += q.get(b, t, h, i) * k.get(b, j, h / s.group, i);
    return sum * static_cast<double>(s.scale);
  }
  float& lse_of(std::int64_t b, std::int64_t h, std::int64_t t) const { return lse[(b * heads() + h) * s.time + t]; }

  void forward(std::int64_t b, std::int64_t h, std::int64_t t) const {
    std::vector<double> weights;
    for (std::int64_t j = 0; j < seen(t); ++j) weights.push_back(score(b, h, t, j));
    const double top = *std::max_element(weights.begin(), weights.end());
    double total = 0.0;
    for (double& weight : weights) total += weight = std::exp(weight - top);
    for (std::int64_t i = 0; i < s.value_width; ++i) {
      double sum = 0.0;
      for (std::int64_t j = 0; j < seen(t); ++j) sum += weights[static_cast<std::size_t>(j)] / total * v.get(b, j, h / s.group, i);
      o.set(b, t, h, i, sum);
    }
    lse_of(b, h, t) = static_cast<float>(top + std::log(total));
  }

  /// Of one head of keys; `to_keys` and `to_values` [keys][width] sum over its queries.
  void backward(std::int64_t b, std::int64_t h, std::vector<double>& to_keys, std::vector<double>& to_values) const {
    for (std::int64_t t = 0; t < s.time; ++t) {
      double delta = 0.0;
      for (std::int64_t i = 0; i < s.value_width; ++i) delta += d_o.get(b, t, h, i) * o.get(b, t, h, i);
      std::vector<double> to_query(static_cast<std::size_t>(s.key_width));
      for (std::int64_t j = 0; j < seen(t); ++j) {
        const double p = std::exp(score(b, h, t, j) - static_cast<double>(lse_of(b, h, t)));
        double dp = 0.0;
        for (std::int64_t i = 0; i < s.value_width; ++i) {
          dp += d_o.get(b, t, h, i) * v.get(b, j, h / s.group, i);
          to_values[static_cast<std::size_t>(j * s.value_width + i)] += p * d_o.get(b, t, h, i);
        }
        const double ds = static_cast<double>(s.scale) * p * (dp - delta);
        for (std::int64_t i = 0; i < s.key_width; ++i) {
          to_query[static_cast<std::size_t>(i)] += ds * k.get(b, j, h / s.group, i);
          to_keys[static_cast<std::size_t>(j * s.key_width + i)] += ds * q.get(b, t, h, i);
        }
      }
      for (std::int64_t i = 0; i < s.key_width; ++i) dq.set(b, t, h, i, to_query[static_cast<std::size_t>(i)]);
    }
  }
};

void check_operands(const SdpaOperands& a) {
  for (const void* address : {a.q, a.k, a.v, a.o, a.lse, a.d_o, a.dq, a.dk, a.dv})
    if (address != nullptr) emulation::check_argument(address);
}

}  // namespace

void EmulatedSdpa::forward(const cuda::Queue&, const SdpaSizes& sizes, const SdpaOperands& operands) {
  ++passes;
  check_operands(operands);
  emulation::enqueue([a = Attention(sizes, operands)] {
    for (std::int64_t b = 0; b < a.s.batch; ++b)
      for (std::int64_t h = 0; h < a.heads(); ++h)
        for (std::int64_t t = 0; t < a.s.time; ++t) a.forward(b, h, t);
  });
}

void EmulatedSdpa::backward(const cuda::Queue&, const SdpaSizes& sizes, const SdpaOperands& operands) {
  ++passes;
  check_operands(operands);
  emulation::enqueue([a = Attention(sizes, operands)] {
    for (std::int64_t b = 0; b < a.s.batch; ++b)
      for (std::int64_t h = 0; h < a.s.heads; ++h) {
        std::vector<double> keys(static_cast<std::size_t>(a.s.keys * a.s.key_width)),
            values(static_cast<std::size_t>(a.s.keys * a.s.value_width));
        for (std::int64_t g = 0; g < a.s.group; ++g) a.backward(b, h * a.s.group + g, keys, values);
        for (std::int64_t j = 0; j < a.s.keys; ++j) {
          for (std::int64_t i = 0; i < a.s.key_width; ++i) a.dk.set(b, j, h, i, keys[static_cast<std::size_t>(j * a.s.key_width + i)]);
          for (std::int64_t i = 0; i < a.s.value_width; ++i)
            a.dv.set(b, j, h, i, values[static_cast<std::size_t>(j * a.s.value_width + i)]);
        }
      }
  });
}

}  // namespace phasor
