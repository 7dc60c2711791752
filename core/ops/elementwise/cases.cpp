#include <cmath>

#include "core/ops/case.h"
#include "core/ops/elementwise/elementwise.h"

namespace phasor::ops {

namespace {

using Function = Tensor (*)(Tape&, const Tensor&);
using Plain = std::function<double(double)>;

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double plain_log_sigmoid(double x) { return x < 0.0 ? x - std::log1p(std::exp(x)) : -std::log1p(std::exp(-x)); }

Array each(const Array& x, const Plain& f) {
  Array y = x;
  for (double& value : y.values) value = f(value);
  return y;
}

Array pairwise(const Array& a, const Array& b, double (*f)(double, double)) {
  Array y = a;
  for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] = f(a.values[i], b.values[i]);
  return y;
}
double sum(double a, double b) { return a + b; }
double product(double a, double b) { return a * b; }

OpCase make(const std::string& name, Shape shape, std::function<Tensor(Tape&, const Tensor&)> function,
            const Plain& formula, double size = 4.0) {
  OpCase op;
  op.name = "elementwise_" + name;
  op.inputs.push_back({"x", shape, -size, size});
  op.run = [=](Tape& tape, std::span<const Tensor> in) { return std::vector{function(tape, in[0])}; };
  op.reference = [=](std::span<const Array> in) { return std::vector{each(in[0], formula)}; };
  return op;
}

/// Keeps the operand away from `kink`, where differences see both sides.
OpCase away_from(double kink, OpCase op) {
  op.prepare = [=](std::vector<Array>& in) {
    for (double& x : in[0].values)
      if (std::abs(x - kink) < 0.01) x = static_cast<double>(static_cast<float>(kink + (x < kink ? -0.02 : 0.02)));
  };
  return op;
}

void add_unary(std::vector<OpCase>& cases, const std::string& name, Function function, const Plain& formula,
               bool kink = false) {
  const std::vector<std::pair<std::string, Shape>> shapes = {
      {"no_rows", {0, 3}}, {"one", {1}}, {"odd", {7, 65}}, {"even", {2, 3, 64}}, {"heads", {2, 5, 3, 7}}};
  for (const auto& [size, shape] : shapes) {
    OpCase op = make(name + "_" + size, shape, function, formula);
    cases.push_back(kink ? away_from(0.0, op) : op);
  }
  // Far out: nothing overflows, and what is small keeps its digits.
  if (name != "exp") cases.push_back(away_from(0.0, make(name + "_far", {3, 65}, function, formula, 90.0)));
}

// Half of the operands are 0: the derivative there is 0, as central differences of |x| say too.
OpCase abs_of_zero() {
  OpCase op = make("abs_zero", {7, 9}, abs, [](double x) { return std::abs(x); });
  op.prepare = [](std::vector<Array>& in) {
    for (std::size_t i = 0; i < in[0].values.size(); ++i)
      if (i % 2 == 0 || std::abs(in[0].values[i]) < 0.01) in[0].values[i] = 0.0;
  };
  return op;
}

OpCase gate(const std::string& name, double factor, std::optional<double> low) {
  OpCase op = make(
      "log_gate_" + name, {2, 5, 3, 8}, [=](Tape& tape, const Tensor& x) { return log_gate(tape, x, factor, low); },
      [=](double x) { return std::max(factor * plain_log_sigmoid(x), low.value_or(-1e300)); }, 12.0);
  return low ? away_from(-std::log(std::exp(-*low / factor) - 1.0), op) : op;
}

OpCase scaled(const std::string& name, Shape shape, double factor) {
  return make(
      "scale_" + name, shape, [=](Tape& tape, const Tensor& x) { return scale(tape, x, factor); },
      [=](double x) { return factor * x; });
}

OpCase two(const std::string& name, Shape a, Shape b, Tensor (*function)(Tape&, const Tensor&, const Tensor&),
           double (*formula)(double, double)) {
  OpCase op;
  op.name = "elementwise_" + name;
  op.inputs = {{"a", a}, {"b", b}};
  op.run = [=](Tape& tape, std::span<const Tensor> in) { return std::vector{function(tape, in[0], in[1])}; };
  op.reference = [=](std::span<const Array> in) { return std::vector{pairwise(in[0], in[1], formula)}; };
  return op;
}

// Both operands are one value.
OpCase self(const std::string& name, Tensor (*function)(Tape&, const Tensor&, const Tensor&),
            double (*formula)(double, double)) {
  OpCase op;
  op.name = "elementwise_" + name;
  op.inputs = {{"a", {3, 7}}};
  op.run = [=](Tape& tape, std::span<const Tensor> in) { return std::vector{function(tape, in[0], in[0])}; };
  op.reference = [=](std::span<const Array> in) { return std::vector{pairwise(in[0], in[0], formula)}; };
  return op;
}

OpCase without_gradient_of(std::size_t input, OpCase op) {
  op.name += "_constant_" + op.inputs[input].name;
  op.inputs[input].differentiable = false;
  return op;
}

OpCase row_added(const std::string& name, Shape x, Shape shift) {
  OpCase op;
  op.name = "elementwise_add_row_" + name;
  op.inputs = {{"x", x}, {"shift", shift}};
  op.run = [](Tape& tape, std::span<const Tensor> in) { return std::vector{add_row(tape, in[0], in[1])}; };
  op.reference = [](std::span<const Array> in) {
    Array y = in[0];
    for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] += in[1].values[i % in[1].values.size()];
    return std::vector{y};
  };
  return op;
}

OpCase grouped(const std::string& name, Shape x, bool per_element) {
  OpCase op;
  op.name = "elementwise_mul_groups_" + name;
  op.inputs = {{"x", x}, {"gate", {x[0], x[1], per_element ? x[2] * x[3] : x[2]}}};
  op.run = [](Tape& tape, std::span<const Tensor> in) { return std::vector{mul_groups(tape, in[0], in[1])}; };
  op.reference = [=](std::span<const Array> in) {
    Array y = in[0];
    const auto share = per_element ? std::size_t{1} : static_cast<std::size_t>(x[3]);
    for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] *= in[1].values[i / share];
    return std::vector{y};
  };
  return op;
}

}  // namespace

std::vector<OpCase> elementwise_cases() {
  std::vector<OpCase> cases;
  add_unary(cases, "sigmoid", sigmoid, logistic);
  add_unary(cases, "silu", silu, [](double x) { return x * logistic(x); });
  add_unary(cases, "exp", exp, [](double x) { return std::exp(x); });
  add_unary(
      cases, "abs", abs, [](double x) { return std::abs(x); }, true);
  add_unary(cases, "gelu", gelu, [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); });
  add_unary(cases, "softplus", softplus, [](double x) { return -plain_log_sigmoid(-x); });
  add_unary(
      cases, "relu", relu, [](double x) { return std::max(x, 0.0); }, true);
  add_unary(
      cases, "elu_plus_one", elu_plus_one, [](double x) { return x > 0.0 ? x + 1.0 : std::exp(x); }, true);
  add_unary(cases, "log_sigmoid", log_sigmoid, plain_log_sigmoid);
  const std::vector<OpCase> others = {
      abs_of_zero(),
      gate("plain", 1.0 / 16.0, std::nullopt),
      gate("clamped", 1.0, -5.0),
      gate("clamped_scaled", 1.0 / 16.0, -0.3),
      gate("clamped_deep", 1.0 / 16.0, -50.0),
      scaled("no_rows", {0, 7}, 3.0),
      scaled("odd", {7, 65}, -0.125),
      scaled("heads", {2, 5, 3, 8}, 0.35),
      two("add_no_rows", {0, 7}, {0, 7}, add, sum),
      two("add_odd", {7, 65}, {7, 65}, add, sum),
      two("add_heads", {2, 5, 3, 8}, {2, 5, 3, 8}, add, sum),
      without_gradient_of(0, two("add", {2, 3, 4}, {2, 3, 4}, add, sum)),
      without_gradient_of(1, two("add", {2, 3, 4}, {2, 3, 4}, add, sum)),
      self("add_self", add, sum),
      two("mul_no_rows", {0, 7}, {0, 7}, mul, product),
      two("mul_one", {1, 1}, {1, 1}, mul, product),
      two("mul_odd", {7, 65}, {7, 65}, mul, product),
      two("mul_heads", {2, 5, 3, 8}, {2, 5, 24}, mul, product),
      without_gradient_of(0, two("mul", {2, 3, 4}, {2, 3, 4}, mul, product)),
      without_gradient_of(1, two("mul", {2, 3, 4}, {2, 3, 4}, mul, product)),
      self("mul_self", mul, product),
      row_added("no_rows", {0, 7}, {7}),
      row_added("one", {1, 1}, {1}),
      row_added("odd", {7, 65}, {65}),
      row_added("heads", {2, 5, 3, 8}, {3, 8}),
      row_added("heads_flat", {2, 5, 3, 8}, {24}),
      without_gradient_of(0, row_added("sequence", {3, 7, 9}, {9})),
      without_gradient_of(1, row_added("sequence", {3, 7, 9}, {9})),
      grouped("no_rows", {0, 3, 2, 4}, false),
      grouped("one", {1, 1, 1, 1}, false),
      grouped("odd", {2, 7, 3, 65}, false),
      grouped("even", {2, 3, 7, 64}, false),
      grouped("elements", {2, 5, 3, 7}, true),
      without_gradient_of(0, grouped("some", {2, 5, 3, 7}, false)),
      without_gradient_of(1, grouped("some", {2, 5, 3, 7}, false)),
  };
  cases.insert(cases.end(), others.begin(), others.end());
  return cases;
}

}  // namespace phasor::ops
