#include "core/ops/short_conv/short_conv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/base/philox.h"

// L6: a convolution of width 4 over pieces shorter than its window. The loss reads all outputs and the last state; its
// gradients are held against differences of a convolution that is written down plainly.

namespace phasor::ops {
namespace {

using Values = std::vector<double>;
constexpr std::int64_t window = 4, channels = 3;

Values random(std::uint64_t stream, std::int64_t size) {
  const RandomStream draws(5, Purpose::data, stream);
  Values out;
  for (std::int64_t i = 0; i < size; ++i) out.push_back(draws.normal(static_cast<std::uint64_t>(i)));
  return out;
}

struct Problem {
  std::int64_t time;
  Values x, weight, state, dy, dstate;  // [time, channels], [channels, window] twice, and the gradients of both outputs
};

double silu(double z) { return z / (1.0 + std::exp(-z)); }

double loss_of(const Problem& p) {
  const auto at = [&](std::int64_t t, std::int64_t c) {
    return t >= 0 ? p.x[static_cast<std::size_t>(t * channels + c)]
                  : p.state[static_cast<std::size_t>(c * window + t + window)];
  };
  double loss = 0.0;
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t t = 0; t < p.time; ++t) {
      double z = 0.0;
      for (std::int64_t j = 0; j < window; ++j)
        z += p.weight[static_cast<std::size_t>(c * window + j)] * at(t - window + 1 + j, c);
      loss += silu(z) * p.dy[static_cast<std::size_t>(t * channels + c)];
    }
    for (std::int64_t j = 0; j < window; ++j)
      loss += at(p.time - window + j, c) * p.dstate[static_cast<std::size_t>(c * window + j)];
  }
  return loss;
}

struct Gradients {
  Values x, weight, state;
};

Gradients in_pieces(Problem& p, const std::vector<std::int64_t>& pieces) {
  Arena arena;
  arena.poison(true);
  Tape tape(arena, {Dtype::f64, nullptr}, true);
  const Shape state_shape{1, channels, window};
  const Tensor weight = tape.variable(Tensor::borrow(p.weight.data(), Dtype::f64, {channels, window}));
  const Tensor first = tape.variable(Tensor::borrow(p.state.data(), Dtype::f64, state_shape));
  std::vector<Tensor> inputs;
  std::vector<std::pair<Tensor, Tensor>> seeds;
  Tensor state = first;
  std::int64_t begin = 0;
  for (const std::int64_t length : pieces) {
    const Shape shape{1, length, channels};
    inputs.push_back(tape.variable(Tensor::borrow(p.x.data() + begin * channels, Dtype::f64, shape)));
    const ConvResult out = short_conv(tape, inputs.back(), weight, {}, true, state, true);
    seeds.emplace_back(out.y, Tensor::borrow(p.dy.data() + begin * channels, Dtype::f64, shape));
    state = out.state;
    begin += length;
  }
  seeds.emplace_back(state, Tensor::borrow(p.dstate.data(), Dtype::f64, state_shape));
  tape.backward(seeds);
  Gradients out;
  const auto append = [&](Values& to, const Tensor& leaf) {
    const Tensor gradient = tape.leaf_gradient(leaf);
    to.insert(to.end(), gradient.as<double>(), gradient.as<double>() + gradient.size());
  };
  for (const Tensor& input : inputs) append(out.x, input);
  append(out.weight, weight);
  append(out.state, first);
  return out;
}

TEST(ShortConv, GradientsOfShortPieces) {
  const std::vector<std::vector<std::int64_t>> ways = {{1},       {2},       {3},          {4},          {1, 1, 1, 1, 1, 1},
                                                       {2, 2, 2}, {3, 3, 3}, {4, 4, 4}, {1, 2, 3, 4}, {4, 1, 3, 1, 2}};
  for (const auto& pieces : ways) {
    std::int64_t time = 0;
    for (const std::int64_t length : pieces) time += length;
    Problem p{time, random(1, time * channels), random(2, channels * window), random(3, channels * window),
              random(4, time * channels), random(5, channels * window)};
    const Gradients got = in_pieces(p, pieces);
    double top = 0.0;
    for (const Values* part : {&got.x, &got.weight, &got.state})
      for (const double g : *part) top = std::max(top, std::abs(g));
    const auto expect = [&](const char* name, Values Problem::*input, const Values& gradient) {
      ASSERT_EQ(gradient.size(), (p.*input).size());
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        constexpr double step = 1e-4;
        const auto moved = [&](double by) {
          Problem other = p;
          (other.*input)[i] += by * step;
          return loss_of(other);
        };
        const double slope = (8.0 * (moved(1.0) - moved(-1.0)) - (moved(2.0) - moved(-2.0))) / (12.0 * step);
        EXPECT_NEAR(gradient[i], slope, 1e-6 * std::max(std::abs(slope), 1e-3 * top))
            << name << " " << i << ", " << pieces.size() << " pieces from " << pieces.front();
      }
    };
    expect("input", &Problem::x, got.x);
    expect("weight", &Problem::weight, got.weight);
    expect("state", &Problem::state, got.state);
  }
}

}  // namespace
}  // namespace phasor::ops
