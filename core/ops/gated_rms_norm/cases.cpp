#include <cmath>

#include "core/ops/case.h"
#include "core/ops/gated_rms_norm/gated_rms_norm.h"

namespace phasor::ops {

namespace {

void normalise(Array& x, std::size_t width, const Array* weight, double eps) {
  for (std::size_t start = 0; start < x.values.size(); start += width) {
    double square = 0.0;
    for (std::size_t i = 0; i < width; ++i) square += x.values[start + i] * x.values[start + i];
    const double rms = std::sqrt(square / static_cast<double>(width) + eps);
    for (std::size_t i = 0; i < width; ++i) x.values[start + i] *= (weight != nullptr ? weight->values[i] : 1.0) / rms;
  }
}

void apply_gate(Array& x, const Array& gate, GateKind kind) {
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const double g = gate.values[i];
    x.values[i] *= (kind == GateKind::silu ? g : 1.0) / (1.0 + std::exp(-g));
  }
}

struct Options {
  bool weighted = true;
  double eps = 1e-5;
  GateKind kind = GateKind::silu;
  GateOrder order = GateOrder::norm_first;
};

OpCase make(const std::string& name, Shape x, Shape gate, Options o) {
  OpCase op;
  op.name = "gated_rms_norm_" + name;
  op.inputs = {{"x", x}, {"gate", gate, -3.0, 3.0}};
  if (o.weighted) op.inputs.push_back({"weight", {x[-1]}, 0.5, 1.5});
  op.run = [=](Tape& tape, std::span<const Tensor> in) {
    return std::vector{gated_rms_norm(tape, in[0], in[1], o.weighted ? in[2] : Tensor(), o.eps, o.kind, o.order)};
  };
  op.reference = [=](std::span<const Array> in) {
    Array y = in[0];
    const auto width = static_cast<std::size_t>(x[-1]);
    if (o.order == GateOrder::gate_first) apply_gate(y, in[1], o.kind);
    normalise(y, width, o.weighted ? &in[2] : nullptr, o.eps);
    if (o.order == GateOrder::norm_first) apply_gate(y, in[1], o.kind);
    return std::vector{y};
  };
  return op;
}

OpCase make(const std::string& name, Shape x, Options o) { return make(name, x, x, o); }

OpCase without_gradient_of(std::size_t input, OpCase op) {
  op.name += "_constant_" + op.inputs[input].name;
  op.inputs[input].differentiable = false;
  return op;
}

}  // namespace

std::vector<OpCase> gated_rms_norm_cases() {
  std::vector<OpCase> cases;
  for (const GateOrder order : {GateOrder::norm_first, GateOrder::gate_first})
    for (const GateKind kind : {GateKind::silu, GateKind::sigmoid}) {
      const std::string name = std::string(order == GateOrder::norm_first ? "norm_first_" : "gate_first_") +
                               (kind == GateKind::silu ? "silu_" : "sigmoid_");
      const Options weighted{true, 1e-5, kind, order}, plain{false, 1e-2, kind, order};
      const std::vector<OpCase> some = {
          make(name + "no_rows", {0, 8}, weighted),
          make(name + "one", {1, 1}, Options{true, 1e-2, kind, order}),
          make(name + "odd", {7, 65}, weighted),
          make(name + "heads", {2, 5, 3, 8}, weighted),
          make(name + "heads_flat_gate", {2, 3, 2, 64}, {2, 3, 128}, weighted),
          make(name + "heads_16", {3, 2, 16}, weighted),
          make(name + "heads_32", {2, 2, 32}, weighted),
          // On a device: several vectors for each team, a team of several warps.
          make(name + "turns", {3, 50, 2, 12}, weighted),
          make(name + "wide", {2, 3, 300}, weighted),
          make(name + "plain_16", {3, 2, 16}, plain),
          make(name + "plain", {5, 7}, plain),
          make(name + "plain_heads", {2, 5, 3, 9}, plain),
          without_gradient_of(0, make(name + "some", {3, 7}, weighted)),
          without_gradient_of(1, make(name + "some", {3, 7}, weighted)),
          without_gradient_of(2, make(name + "some", {3, 7}, weighted)),
          without_gradient_of(0, without_gradient_of(1, make(name + "some", {3, 7}, weighted))),
      };
      cases.insert(cases.end(), some.begin(), some.end());
    }
  // More columns than a team of a device keeps.
  cases.push_back(make("widest", {1, 2050}, Options{true, 1e-5, GateKind::silu, GateOrder::norm_first}));
  return cases;
}

}  // namespace phasor::ops
