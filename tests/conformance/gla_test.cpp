#include "core/ops/gla/gla.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

// What users of chunked recurrences have suffered (NaN on long sequences and under strong decay, leaks inside a chunk,
// results that depend on the chunk length or on where a sequence was cut), asked of gla. The CPU kernel runs the
// recurrence itself, so much of this holds to the bit; where a test asks for bits, it says so.

namespace phasor::ops {
namespace {

using Values = std::vector<double>;

struct Sizes {
  std::int64_t batch = 1, time = 1, heads = 1, key = 16, value = 16;
};

/// Inputs, and the gradients of the scalar under test with respect to both outputs.
struct Problem {
  Sizes sizes;
  Values q, k, v, log_gate, state_in, d_o, d_state;
};

/// Both outputs and all gradients.
struct Answer {
  Values o, state, dq, dk, dv, dg, d_in;
};

constexpr const char* names[] = {"o", "state", "dq", "dk", "dv", "dg", "dstate_in"};
std::vector<Values Answer::*> parts() {
  return {&Answer::o, &Answer::state, &Answer::dq, &Answer::dk, &Answer::dv, &Answer::dg, &Answer::d_in};
}

std::size_t place(std::int64_t at) { return static_cast<std::size_t>(at); }
double scale_of(const Sizes& s) { return 1.0 / std::sqrt(static_cast<double>(s.key)); }

Values normal(std::int64_t size, std::mt19937& engine) {
  std::normal_distribution<float> draw;
  Values out(place(size));
  for (double& x : out) x = static_cast<double>(draw(engine));
  return out;
}

Problem random_problem(const Sizes& s, unsigned seed) {
  std::mt19937 engine(seed);
  const std::int64_t tokens = s.batch * s.time * s.heads, states = s.batch * s.heads * s.key * s.value;
  Problem p{s, {}, {}, {}, {}, {}, {}, {}};
  p.q = normal(tokens * s.key, engine);
  p.k = normal(tokens * s.key, engine);
  p.v = normal(tokens * s.value, engine);
  p.log_gate = normal(tokens * s.key, engine);
  for (double& g : p.log_gate) g = static_cast<double>(static_cast<float>(-std::log1p(std::exp(-g)) / 16.0));
  p.state_in = normal(states, engine);
  p.d_o = normal(tokens * s.value, engine);
  p.d_state = normal(states, engine);
  return p;
}

/// The recurrence and its derivative, in double, one element after the other. Columns of the state do not meet, so one
/// column at a time is kept for every step.
Answer oracle(const Problem& p) {
  const Sizes& s = p.sizes;
  const double scale = scale_of(s);
  const std::int64_t kv = s.key * s.value;
  Answer a{Values(p.v.size()), Values(p.state_in.size()), Values(p.q.size()),       Values(p.k.size()),
           Values(p.v.size()), Values(p.q.size()),        Values(p.state_in.size())};
  for (std::int64_t head = 0; head < s.batch * s.heads; ++head) {
    const auto token = [&](std::int64_t t) { return (head / s.heads * s.time + t) * s.heads + head % s.heads; };
    Values decays(place(s.time * s.key)), states(place((s.time + 1) * s.key)), slope(place(s.key));
    for (std::int64_t t = 0; t < s.time; ++t)
      for (std::int64_t i = 0; i < s.key; ++i)
        decays[place(t * s.key + i)] = std::exp(p.log_gate[place(token(t) * s.key + i)]);
    for (std::int64_t j = 0; j < s.value; ++j) {
      const auto corner = [&](std::int64_t i) { return place(head * kv + i * s.value + j); };
      for (std::int64_t i = 0; i < s.key; ++i) states[place(i)] = p.state_in[corner(i)];
      for (std::int64_t t = 0; t < s.time; ++t)
        for (std::int64_t i = 0; i < s.key; ++i) {
          const std::size_t at_key = place(token(t) * s.key + i), at_value = place(token(t) * s.value + j);
          const double now = decays[place(t * s.key + i)] * states[place(t * s.key + i)] + p.k[at_key] * p.v[at_value];
          states[place((t + 1) * s.key + i)] = now;
          a.o[at_value] += scale * now * p.q[at_key];
        }
      for (std::int64_t i = 0; i < s.key; ++i) {
        a.state[corner(i)] = states[place(s.time * s.key + i)];
        slope[place(i)] = p.d_state[corner(i)];
      }
      for (std::int64_t t = s.time - 1; t >= 0; --t)
        for (std::int64_t i = 0; i < s.key; ++i) {
          const std::size_t at_key = place(token(t) * s.key + i), at_value = place(token(t) * s.value + j);
          double& d = slope[place(i)];
          const double decay = decays[place(t * s.key + i)];
          d += scale * p.q[at_key] * p.d_o[at_value];
          a.dq[at_key] += scale * states[place((t + 1) * s.key + i)] * p.d_o[at_value];
          a.dk[at_key] += d * p.v[at_value];
          a.dv[at_value] += d * p.k[at_key];
          a.dg[at_key] += d * decay * states[place(t * s.key + i)];
          d *= decay;
        }
      for (std::int64_t i = 0; i < s.key; ++i) a.d_in[corner(i)] = slope[place(i)];
    }
  }
  return a;
}

Tensor to_tensor(Tape& tape, const Shape& shape, const double* values) {
  const Tensor out = tape.empty(shape);
  for (std::int64_t i = 0; i < out.size(); ++i) {
    if (tape.dtype() == Dtype::f64) {
      out.as<double>()[i] = values[i];
    } else {
      out.as<float>()[i] = static_cast<float>(values[i]);
    }
  }
  return out;
}

void append(Values& to, const Tensor& from) {
  for (std::int64_t r = 0; r < from.rows(); ++r)
    for (std::int64_t i = 0; i < from.width(); ++i)
      to.push_back(from.dtype() == Dtype::f64 ? row<double>(from.view(), r)[i]
                                              : static_cast<double>(row<float>(from.view(), r)[i]));
}

/// gla over the pieces [0, cuts[0]), [cuts[0], cuts[1]), .. of a sequence, the state carried from one to the next.
/// Batch 1 when there is more than one piece.
Answer run(const Problem& p, Dtype dtype, std::int64_t chunk, std::vector<std::int64_t> cuts = {}) {
  const Sizes& s = p.sizes;
  cuts.push_back(s.time);
  Arena arena;
  arena.poison(true);
  Tape tape(arena, {dtype, nullptr}, true);
  const Shape state_shape{s.batch, s.heads, s.key, s.value};
  const Tensor first = tape.variable(to_tensor(tape, state_shape, p.state_in.data()));
  std::vector<std::array<Tensor, 4>> inputs;
  std::vector<std::pair<Tensor, Tensor>> seeds;
  Answer a;
  Tensor state = first;
  std::int64_t begin = 0;
  for (const std::int64_t end : cuts) {
    const Shape keys{s.batch, end - begin, s.heads, s.key}, values{s.batch, end - begin, s.heads, s.value};
    const std::int64_t at_key = begin * s.heads * s.key, at_value = begin * s.heads * s.value;
    inputs.push_back({tape.variable(to_tensor(tape, keys, p.q.data() + at_key)),
                      tape.variable(to_tensor(tape, keys, p.k.data() + at_key)),
                      tape.variable(to_tensor(tape, values, p.v.data() + at_value)),
                      tape.variable(to_tensor(tape, keys, p.log_gate.data() + at_key))});
    const auto& in = inputs.back();
    const GlaResult result = gla(tape, in[0], in[1], in[2], in[3], scale_of(s), state, true, chunk);
    append(a.o, result.o);
    seeds.emplace_back(result.o, to_tensor(tape, values, p.d_o.data() + at_value));
    state = result.state;
    begin = end;
  }
  append(a.state, state);
  seeds.emplace_back(state, to_tensor(tape, state_shape, p.d_state.data()));
  tape.backward(seeds);
  for (const auto& in : inputs) {
    append(a.dq, tape.leaf_gradient(in[0]));
    append(a.dk, tape.leaf_gradient(in[1]));
    append(a.dv, tape.leaf_gradient(in[2]));
    append(a.dg, tape.leaf_gradient(in[3]));
  }
  append(a.d_in, tape.leaf_gradient(first));
  return a;
}

/// Largest difference relative to the largest expected value; infinite when something is not finite.
double distance(const Values& got, const Values& want) {
  if (got.size() != want.size()) return INFINITY;
  double worst = 0.0, top = 0.0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(got[i])) return INFINITY;
    worst = std::max(worst, std::abs(got[i] - want[i]));
    top = std::max(top, std::abs(want[i]));
  }
  return worst == 0.0 ? 0.0 : worst / top;
}

void expect_close(const Answer& got, const Answer& want, double tolerance, const std::string& where) {
  for (std::size_t i = 0; i < parts().size(); ++i) {
    const auto part = parts()[i];
    EXPECT_LE(distance(got.*part, want.*part), tolerance) << names[i] << ", " << where;
  }
}

/// One constant gate in every channel, or a weak one with a single step of -60.
Problem with_gate(const Sizes& s, double gate) {
  Problem p = random_problem(s, 7);
  const bool single = gate == -60.0;
  std::fill(p.log_gate.begin(), p.log_gate.end(), static_cast<double>(static_cast<float>(single ? -0.01 : gate)));
  if (single) std::fill_n(p.log_gate.begin() + s.time / 2 * s.key, s.key, -60.0);
  return p;
}

class GlaGates : public testing::TestWithParam<double> {};

// Acceptance A7, L2.
TEST_P(GlaGates, MatchTheOracleForEveryLengthAndChunk) {
  for (const std::int64_t time : {1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 129, 256, 1000}) {
    const Problem p = with_gate({.time = time}, GetParam());
    const Answer want = oracle(p), one = run(p, Dtype::f32, 16);
    expect_close(run(p, Dtype::f64, 16), want, 1e-11, "f64, time " + std::to_string(time));
    for (const std::int64_t chunk : {16, 32, 64, 128}) {
      const std::string where = "time " + std::to_string(time) + ", chunk " + std::to_string(chunk);
      const Answer got = run(p, Dtype::f32, chunk);
      expect_close(got, want, 1e-5, where);  // asked for: 1e-4
      expect_close(got, one, 0.0, where);    // asked for: 2e-4 between chunk lengths; here to the bit
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Strengths, GlaGates, testing::Values(-1e-6, -0.05, -1.5, -5.0, -30.0, -60.0));

// L13: any head size.
TEST(Gla, AnyHeadSize) {
  for (const std::int64_t width : {1, 4, 8, 16, 24, 80, 128, 256, 257, 512}) {
    for (const std::int64_t value : {width, std::int64_t{5}}) {
      const Problem p = random_problem({.batch = 2, .time = 9, .heads = 2, .key = width, .value = value}, 3);
      expect_close(run(p, Dtype::f32, 4), oracle(p), 1e-5, "head size " + std::to_string(width));
    }
  }
}

// A gate of minus infinity forgets everything.
TEST(Gla, ForgetsAtMinusInfinity) {
  Problem p = random_problem({.time = 40}, 5);
  std::fill_n(p.log_gate.begin() + 20 * 16, 16, -INFINITY);
  expect_close(run(p, Dtype::f32, 16), oracle(p), 1e-5, "minus infinity");
}

// L11: outputs up to t keep their bits when all later tokens change.
TEST(Gla, NeverLooksAhead) {
  const Problem p = random_problem({.time = 130, .heads = 2}, 11);
  for (const std::int64_t chunk : {0, 16, 64, 128}) {
    const Answer before = run(p, Dtype::f32, chunk);
    for (const std::int64_t t : {0, 14, 15, 16, 62, 63, 64, 65, 128}) {
      Problem other = p;
      const Problem noise = random_problem(p.sizes, 12);
      const std::int64_t cut = (t + 1) * p.sizes.heads * 16;
      for (auto part : {&Problem::q, &Problem::k, &Problem::v, &Problem::log_gate})
        std::copy((noise.*part).begin() + cut, (noise.*part).end(), (other.*part).begin() + cut);
      const Answer after = run(other, Dtype::f32, chunk);
      EXPECT_TRUE(std::equal(before.o.begin(), before.o.begin() + cut, after.o.begin())) << "after token " << t;
      EXPECT_NE(before.o[place(cut)], after.o[place(cut)]);
    }
  }
}

TEST(Gla, NoGradientFromTheFuture) {
  for (const std::int64_t t : {0, 14, 15, 16, 62, 63, 64, 65, 128}) {
    Problem p = random_problem({.time = 130}, 13);
    std::fill(p.d_state.begin(), p.d_state.end(), 0.0);
    for (std::int64_t i = 0; i < 130 * 16; ++i)
      if (i / 16 != t) p.d_o[place(i)] = 0.0;
    const Answer a = run(p, Dtype::f32, 0);
    for (auto part : {&Answer::dq, &Answer::dk, &Answer::dv, &Answer::dg})
      EXPECT_TRUE(std::all_of((a.*part).begin() + (t + 1) * 16, (a.*part).end(), [](double x) { return x == 0.0; }));
  }
}

// A8: a sequence in pieces is the whole: bits of the outputs, and gradients through the carried state.
TEST(Gla, PiecesMakeTheWhole) {
  const Problem p = random_problem({.time = 130, .heads = 2, .key = 16, .value = 24}, 17);
  std::vector<std::vector<std::int64_t>> cuts{{1}, {2}, {63}, {64}, {65}, {129}, {1, 2, 63, 64, 65, 129}, {}};
  for (std::int64_t t = 1; t < 130; ++t) cuts.back().push_back(t);
  for (const std::int64_t chunk : {0, 16, 64}) {
    const Answer whole = run(p, Dtype::f32, chunk);
    for (const auto& cut : cuts) {
      const Answer pieces = run(p, Dtype::f32, chunk, cut);
      EXPECT_EQ(pieces.o, whole.o) << "first cut at " << cut.front();
      EXPECT_EQ(pieces.state, whole.state) << "first cut at " << cut.front();
      expect_close(pieces, whole, 1e-5, "first cut at " + std::to_string(cut.front()));
    }
  }
}

// L1: one head of 64, 43,884 tokens.
TEST(Gla, LongSequencesStayFinite) {
  const Problem p = random_problem({.time = 43884, .key = 64, .value = 64}, 19);
  expect_close(run(p, Dtype::f32, 0), oracle(p), 1e-5, "long");  // asked for: 1e-3
}

}  // namespace
}  // namespace phasor::ops
