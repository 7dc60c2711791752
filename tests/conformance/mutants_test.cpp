// The harness must fail when an op is wrong. A small op is planted here in ten versions: one right, nine each with one
// mistake of the kinds that kernels are made of.

#include <gtest/gtest.h>

#include "core/ops/case.h"
#include "tests/conformance/check_case.h"

namespace phasor::ops {
namespace {

enum class Mutant { none, forward_sign, off_by_one, dropped_term, backward_sign, wrong_neighbour, overwrites, unwritten, ignores_stride, unsteady };

struct PlantArgs {
  View x, w, y, dy, dx, dw;
  std::int64_t rows, width;
  bool accumulate;
  Mutant mutant;
};

int unsteady_calls = 0;

// y_i = w_i x_i + x_{i-1}^2 along a row (x_{-1} = 0).
template <class T>
void forward(const PlantArgs& a) {
  const T* w = static_cast<const T*>(a.w.data);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const T* x = a.mutant == Mutant::ignores_stride ? static_cast<const T*>(a.x.data) + r * a.width : row<T>(a.x, r);
    T* y = row<T>(a.y, r);
    for (std::int64_t i = 0; i < a.width; ++i) {
      const std::int64_t before = a.mutant == Mutant::off_by_one ? i - 2 : i - 1;
      const T square = before >= 0 ? x[before] * x[before] : T(0);
      y[i] = w[i] * x[i] + (a.mutant == Mutant::forward_sign ? -square : square);
    }
    if (a.mutant == Mutant::unsteady) y[0] += T(1e-7) * static_cast<T>(++unsteady_calls % 3);
  }
  if (a.mutant == Mutant::unwritten && a.rows > 0) row<T>(a.y, a.rows - 1)[a.width - 1] = std::numeric_limits<T>::quiet_NaN();
}

template <class T>
void backward(const PlantArgs& a) {
  const T* w = static_cast<const T*>(a.w.data);
  for (std::int64_t r = 0; r < a.rows; ++r) {
    const T* x = row<T>(a.x, r);
    const T* dy = row<T>(a.dy, r);
    T* dx = row<T>(a.dx, r);
    T* dw = static_cast<T*>(a.dw.data);
    for (std::int64_t i = 0; i < a.width; ++i) {
      const std::int64_t next = a.mutant == Mutant::wrong_neighbour ? i : i + 1;
      T g = w[i] * dy[i];
      if (next < a.width && a.mutant != Mutant::dropped_term) g += T(2) * x[i] * dy[next];
      if (a.mutant == Mutant::backward_sign) g = -g;
      dx[i] = a.accumulate && a.mutant != Mutant::overwrites ? dx[i] + g : g;
      dw[i] += dy[i] * x[i];
    }
  }
}

constexpr Kernel<PlantArgs> plant_forward{"plant.forward", forward<float>, forward<double>};
constexpr Kernel<PlantArgs> plant_backward{"plant.backward", backward<float>, backward<double>};

Tensor plant(Tape& tape, const Tensor& x, const Tensor& w, Mutant mutant) {
  const Tensor y = tape.output(x.shape(), {&x, &w});
  PlantArgs args{x.view(), w.view(), y.view(), {}, {}, {}, x.rows(), x.width(), false, mutant};
  launch(tape.stream(), plant_forward, args, {0.0, moved(x, w, y)});
  tape.record([=](Tape& t) {
    const Tensor dy = t.take(y);
    const auto dx = t.gradient(x);
    const auto dw = t.sum(w);
    PlantArgs back = args;
    back.dy = dy.view();
    back.dx = dx.tensor.view();
    back.dw = dw.tensor.view();
    back.accumulate = dx.accumulate;
    launch(t.stream(), plant_backward, back, {0.0, moved(x, w, dy, dx, dw)});
  });
  return y;
}

std::vector<std::string> faults_of(Mutant mutant) {
  OpCase op;
  op.name = "plant";
  op.inputs = {{"x", {7, 9}}, {"w", {9}, 0.5, 1.5}};
  op.run = [=](Tape& tape, std::span<const Tensor> in) { return std::vector{plant(tape, in[0], in[1], mutant)}; };
  op.reference = [](std::span<const Array> in) {
    Array y = in[0];
    for (std::size_t at = 0; at < y.values.size(); ++at) {
      const std::size_t i = at % 9;
      const double before = i > 0 ? in[0].values[at - 1] : 0.0;
      y.values[at] = in[1].values[i] * in[0].values[at] + before * before;
    }
    return std::vector{y};
  };
  return check_case(op);
}

TEST(Mutants, TheRightVersionPasses) { EXPECT_EQ(faults_of(Mutant::none), std::vector<std::string>{}); }

class Planted : public testing::TestWithParam<Mutant> {};
TEST_P(Planted, IsCaught) { EXPECT_FALSE(faults_of(GetParam()).empty()); }

INSTANTIATE_TEST_SUITE_P(Mutants, Planted,
                         testing::Values(Mutant::forward_sign, Mutant::off_by_one, Mutant::dropped_term, Mutant::backward_sign,
                                         Mutant::wrong_neighbour, Mutant::overwrites, Mutant::unwritten,
                                         Mutant::ignores_stride, Mutant::unsteady));

}  // namespace
}  // namespace phasor::ops
