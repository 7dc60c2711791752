#include "core/ops/elementwise/elementwise.h"

#include <limits>

#include "core/graph/place.h"
#include "core/ops/elementwise/kernel.h"
#include "core/ops/vector_math.h"

namespace phasor::ops {

namespace {

constexpr double lowest = -std::numeric_limits<double>::infinity();

/// How the elements are walked: as one long row where nothing is strided.
struct Extent {
  std::int64_t rows, width;
};

Extent extent(std::initializer_list<const Tensor*> tensors) {
  const Tensor& first = **tensors.begin();
  for (const Tensor* tensor : tensors)
    if (!tensor->contiguous()) return {first.rows(), first.width()};
  return {1, first.size()};
}

bool keeps_result(Unary op) {
  return op == Unary::sigmoid || op == Unary::exp || op == Unary::relu || op == Unary::elu_plus_one;
}

/// `low` and `low_operand`: smallest result of log_gate, and the operand that gives it.
Tensor unary(Tape& tape, Unary op, const Tensor& x, double factor = 1.0, double low = lowest,
             double low_operand = lowest) {
  const Tensor y = tape.output(x.shape(), {&x});
  const Extent size = extent({&x, &y});
  launch(tape.stream(), unary_forward, {op, x.view(), y.view(), size.rows, size.width, factor, low},
         {0.0, moved(x, y)});
  if (!tape.wants(y)) return y;
  const Tensor kept = op == Unary::scale ? Tensor() : (keeps_result(op) ? y : x).detached();
  tape.record([=, from = place_of(x), to = place_of(y)](Tape& t) {
    const Tensor dy = t.take(to);
    if (!dy) return;
    const auto dx = t.gradient(from);
    const Tensor& read = kept ? kept : dy;
    const Extent walk = extent({&read, &dy, &dx.tensor});
    launch(t.stream(), unary_backward,
           {op, read.view(), dy.view(), dx.tensor.view(), walk.rows, walk.width, factor, low_operand, dx.accumulate},
           {0.0, moved(kept, dy, dx)});
  });
  return y;
}

void check_equal(const char* op, const Tensor& a, const Tensor& b) {
  PHASOR_CHECK(a.rows() == b.rows() && a.width() == b.width(),
               std::string(op) + " of " + a.shape().text() + " and " + b.shape().text());
}

/// Gradient of one factor of y = factor (.) other.
void pull_product(Tape& t, const Tensor& factor, const Tensor& other, const Tensor& dy) {
  const auto gradient = t.gradient(factor);
  if (!gradient.tensor) return;
  const Extent walk = extent({&dy, &other, &gradient.tensor});
  launch(t.stream(), mul_backward,
         {dy.view(), other.view(), gradient.tensor.view(), walk.rows, walk.width, gradient.accumulate},
         {0.0, moved(dy, other, gradient)});
}

}  // namespace

Tensor sigmoid(Tape& tape, const Tensor& x) { return unary(tape, Unary::sigmoid, x); }
Tensor silu(Tape& tape, const Tensor& x) { return unary(tape, Unary::silu, x); }
Tensor exp(Tape& tape, const Tensor& x) { return unary(tape, Unary::exp, x); }
Tensor abs(Tape& tape, const Tensor& x) { return unary(tape, Unary::abs, x); }
Tensor softplus(Tape& tape, const Tensor& x) { return unary(tape, Unary::softplus, x); }
Tensor relu(Tape& tape, const Tensor& x) { return unary(tape, Unary::relu, x); }
Tensor elu_plus_one(Tape& tape, const Tensor& x) { return unary(tape, Unary::elu_plus_one, x); }
Tensor log_sigmoid(Tape& tape, const Tensor& x) { return unary(tape, Unary::log_sigmoid, x); }
Tensor gelu(Tape& tape, const Tensor& x) { return unary(tape, Unary::gelu, x); }
Tensor scale(Tape& tape, const Tensor& x, double factor) { return unary(tape, Unary::scale, x, factor); }

Tensor log_gate(Tape& tape, const Tensor& x, double scale, std::optional<double> clamp_min) {
  PHASOR_CHECK(scale > 0.0, "log_gate with scale " + std::to_string(scale));
  if (!clamp_min) return unary(tape, Unary::log_gate, x, scale);
  PHASOR_CHECK(*clamp_min < 0.0, "log_gate with a bound of " + std::to_string(*clamp_min) + ", expected below 0");
  // scale log_sigmoid(x) = clamp_min, solved for x.
  const double low_operand = -math::log(math::exp(-*clamp_min / scale) - 1.0);
  return unary(tape, Unary::log_gate, x, scale, *clamp_min, low_operand);
}

Tensor add(Tape& tape, const Tensor& a, const Tensor& b) {
  PHASOR_CHECK(a.shape() == b.shape(), "add " + a.shape().text() + " and " + b.shape().text());
  const Tensor y = tape.output(a.shape(), {&a, &b});
  phasor::add(tape.stream(), a, b, y);
  if (!tape.wants(y)) return y;
  tape.record([left = place_of(a), right = place_of(b), to = place_of(y)](Tape& t) {
    Tensor dy = t.take(to);
    t.add(left, dy);
    t.add(right, std::move(dy));
  });
  return y;
}

Tensor mul(Tape& tape, const Tensor& a, const Tensor& b) {
  check_equal("mul", a, b);
  const Tensor y = tape.output(a.shape(), {&a, &b});
  const Extent size = extent({&a, &b, &y});
  launch(tape.stream(), mul_forward, {a.view(), b.view(), y.view(), size.rows, size.width, false},
         {0.0, moved(a, b, y)});
  if (!tape.wants(y)) return y;
  tape.record([a, b, to = place_of(y)](Tape& t) {
    const Tensor dy = t.take(to);
    if (!dy) return;
    pull_product(t, a, b, dy);
    pull_product(t, b, a, dy);
  });
  return y;
}

Tensor add_row(Tape& tape, const Tensor& x, const Tensor& shift) {
  PHASOR_CHECK(shift.size() == x.width(), "add_row of " + shift.shape().text() + " to " + x.shape().text());
  const std::int64_t rows = x.rows(), parts = shift.rows(), width = shift.width();
  const Tensor y = tape.output(x.shape(), {&x, &shift});
  launch(tape.stream(), add_row_forward, {x.view(), shift.view(), y.view(), rows, parts, width}, {0.0, moved(x, shift, y)});
  if (!tape.wants(y)) return y;
  tape.record([=, from = place_of(x), row = place_of(shift), to = place_of(y)](Tape& t) {
    Tensor dy = t.take(to);
    if (!dy) return;
    const auto dshift = t.sum(row);
    if (dshift.tensor)
      launch(t.stream(), add_row_backward, {dy.view(), dshift.tensor.view(), rows, parts, width}, {0.0, moved(dy, dshift)});
    t.add(from, std::move(dy));
  });
  return y;
}

Tensor mul_groups(Tape& tape, const Tensor& x, const Tensor& gate) {
  PHASOR_CHECK(
      x.shape().rank() == 4 && gate.rows() == x.rows() && (gate.width() == x.size(2) || gate.width() == x.width()),
      "mul_groups gate " + gate.shape().text() + " for " + x.shape().text());
  if (gate.width() == x.width()) return mul(tape, x, gate);
  const std::int64_t rows = x.rows(), groups = x.size(2), width = x.size(3);
  const Tensor y = tape.output(x.shape(), {&x, &gate});
  launch(tape.stream(), mul_groups_forward, {x.view(), gate.view(), y.view(), rows, groups, width},
         {0.0, moved(x, gate, y)});
  if (!tape.wants(y)) return y;
  tape.record([=, to = place_of(y)](Tape& t) {
    const Tensor dy = t.take(to);
    if (!dy) return;
    const auto dx = t.gradient(x);
    const auto dgate = t.gradient(gate);
    launch(t.stream(), mul_groups_backward,
           {x.view(), gate.view(), dy.view(), dx.tensor.view(), dgate.tensor.view(), rows, groups, width, dx.accumulate,
            dgate.accumulate},
           {0.0, moved(x, gate, dy, dx, dgate)});
  });
  return y;
}

}  // namespace phasor::ops
