#include "tests/conformance/check_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace phasor::ops {

namespace {

// Splitmix64: test data only.
double uniform(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
}

Array random_array(const CaseInput& input, std::uint64_t& state) {
  Array out{input.shape, std::vector<double>(static_cast<std::size_t>(input.shape.size()))};
  for (double& value : out.values) {
    if (input.indices > 0) {
      value = std::floor(uniform(state) * static_cast<double>(input.indices));
      if (input.ignored && uniform(state) < 0.3) value = -1.0;
    } else {
      // Values that f32 holds exactly, so that both precisions see the same input.
      value = static_cast<double>(static_cast<float>(input.low + (input.high - input.low) * uniform(state)));
    }
  }
  return out;
}

/// The memory of a tensor as the host may read and write it: a copy of what a device has, brought back by `write`.
class HostView {
 public:
  HostView(const Tensor& tensor, Device* device) : tensor_(tensor), device_(device), view_(tensor.view()) {
    if (device == nullptr || tensor.size() == 0) return;
    copy_.resize(static_cast<std::size_t>((tensor.rows() - 1) * tensor.row_stride() + tensor.width()) * size_of(tensor.dtype()));
    device->copy_out(copy_.data(), tensor.data(), copy_.size());
    view_.data = copy_.data();
  }
  void write() const {
    if (!copy_.empty()) device_->copy_in(tensor_.data(), copy_.data(), copy_.size());
  }
  double get(std::int64_t r, std::int64_t i) const {
    switch (tensor_.dtype()) {
      case Dtype::f32: return static_cast<double>(row<float>(view_, r)[i]);
      case Dtype::f64: return row<double>(view_, r)[i];
      case Dtype::i32: return static_cast<double>(row<std::int32_t>(view_, r)[i]);
    }
    return 0.0;
  }
  void set(std::int64_t r, std::int64_t i, double value) const {
    switch (tensor_.dtype()) {
      case Dtype::f32: row<float>(view_, r)[i] = static_cast<float>(value); break;
      case Dtype::f64: row<double>(view_, r)[i] = value; break;
      case Dtype::i32: row<std::int32_t>(view_, r)[i] = static_cast<std::int32_t>(value); break;
    }
  }

 private:
  const Tensor& tensor_;
  Device* device_;
  View view_;
  std::vector<std::byte> copy_;
};

void fill(const Tensor& to, const std::vector<double>& values, Device* device) {
  const HostView view(to, device);
  for (std::int64_t r = 0; r < to.rows(); ++r)
    for (std::int64_t i = 0; i < to.width(); ++i) view.set(r, i, values[static_cast<std::size_t>(r * to.width() + i)]);
  view.write();
}

std::vector<double> read(const Tensor& from, Device* device) {
  const HostView view(from, device);
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(from.size()));
  for (std::int64_t r = 0; r < from.rows(); ++r)
    for (std::int64_t i = 0; i < from.width(); ++i) values.push_back(view.get(r, i));
  return values;
}

struct Pass {
  std::vector<std::vector<double>> outputs;
  std::vector<std::vector<double>> gradients;  // per input; empty when not differentiable
};

Pass run_pass(Arena& arena, const OpCase& op, const std::vector<Array>& inputs,
              const std::vector<std::vector<double>>& cotangents, Dtype dtype, bool strided, double seed_gradient,
              ProductPrecision products = ProductPrecision::full, bool library = false) {
  Device* device = arena.device();
  Tape tape(arena, {dtype, nullptr, false, device, products, library}, true);
  std::vector<Tensor> leaves;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const CaseInput& input = op.inputs[i];
    const Dtype own = input.indices > 0 ? Dtype::i32 : (input.always_f64 ? Dtype::f64 : dtype);
    Tensor leaf;
    if (strided && input.shape.rank() >= 2 && input.indices == 0 && !input.always_f64) {
      const Tensor wide = tape.empty(input.shape.with_row({input.shape.width() + 5}), own);
      leaf = wide.columns(3, input.shape.width()).reshape(input.shape);
    } else {
      leaf = tape.empty(input.shape, own);
    }
    fill(leaf, inputs[i].values, device);
    leaves.push_back(input.differentiable && input.indices == 0 ? tape.variable(leaf) : leaf);
  }
  const std::vector<Tensor> outputs = op.run(tape, leaves);
  Pass pass;
  for (const Tensor& output : outputs) pass.outputs.push_back(read(output, device));

  std::vector<std::pair<Tensor, Tensor>> seeds;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!tape.wants(outputs[i])) continue;
    const Tensor cotangent = tape.empty(outputs[i].shape(), outputs[i].dtype());
    fill(cotangent, cotangents[i], device);
    seeds.emplace_back(outputs[i], cotangent);
  }
  if (seed_gradient != 0.0) {
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (!tape.wants(leaves[i])) continue;
      const Tensor there = tape.empty(leaves[i].shape(), leaves[i].dtype());
      fill(there, std::vector<double>(inputs[i].values.size(), seed_gradient), device);
      seeds.emplace_back(leaves[i], there);
    }
  }
  tape.backward(seeds);
  for (const Tensor& leaf : leaves) {
    if (leaf.node() == 0) {
      pass.gradients.emplace_back();
      continue;
    }
    const Tensor gradient = tape.leaf_gradient(leaf);
    pass.gradients.push_back(gradient ? read(gradient, device)
                                      : std::vector<double>(static_cast<std::size_t>(leaf.size()), 0.0));
  }
  return pass;
}

double largest(const std::vector<double>& values) {
  double top = 0.0;
  for (const double value : values) top = std::max(top, std::abs(value));
  return top;
}

/// The worst difference, relative to the largest expected value of the group (floor 1e-3 of `scale`).
void compare(std::vector<std::string>& faults, const std::string& what, const std::vector<double>& got,
             const std::vector<double>& want, double tolerance, double scale) {
  if (got.size() != want.size()) {
    faults.push_back(fmt::format("{}: {} values, expected {}", what, got.size(), want.size()));
    return;
  }
  const double bound = tolerance * std::max({largest(want), 1e-3 * scale, 1e-30});
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!(std::abs(got[i] - want[i]) <= bound)) {
      faults.push_back(fmt::format("{}: element {} is {:.9g}, expected {:.9g} (bound {:.2g})", what, i, got[i], want[i], bound));
      return;
    }
  }
}

/// d loss / d input by five-point differences of the reference, on up to 40 elements per input.
void compare_differences(std::vector<std::string>& faults, const OpCase& op, const std::vector<Array>& inputs,
                         const std::vector<std::vector<double>>& cotangents,
                         const std::vector<std::vector<double>>& gradients) {
  const auto loss = [&](const std::vector<Array>& at) {
    const std::vector<Array> outputs = op.reference(at);
    double sum = 0.0;
    for (std::size_t o = 0; o < outputs.size(); ++o)
      for (std::size_t i = 0; i < outputs[o].values.size(); ++i) sum += outputs[o].values[i] * cotangents[o][i];
    return sum;
  };
  double scale = 0.0;
  for (const auto& gradient : gradients) scale = std::max(scale, largest(gradient));
  for (std::size_t input = 0; input < inputs.size(); ++input) {
    if (gradients[input].empty()) continue;
    const std::size_t count = gradients[input].size();
    const std::size_t stride = std::max<std::size_t>(1, count / 40);
    const double bound = 2e-6 * std::max({largest(gradients[input]), 1e-2 * scale, 1e-6});
    for (std::size_t i = 0; i < count; i += stride) {
      std::vector<Array> moved = inputs;
      const auto at = [&](double offset) {
        moved[input].values[i] = inputs[input].values[i] + offset * op.step;
        return loss(moved);
      };
      const double slope = (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * op.step);
      if (!(std::abs(gradients[input][i] - slope) <= bound)) {
        faults.push_back(fmt::format("gradient of {}: element {} is {:.9g}, differences give {:.9g} (bound {:.2g})",
                                     op.inputs[input].name, i, gradients[input][i], slope, bound));
        break;
      }
    }
  }
}

/// What a case is made of, and what is expected of it.
struct Problem {
  std::vector<Array> inputs, expected;
  std::vector<std::vector<double>> cotangents;
  Pass exact;  // of the processor, in double
  double scale = 0.0, gradient_scale = 0.0;
};

Problem problem_of(const OpCase& op) {
  Problem p;
  std::uint64_t state = 0x9a5e;
  for (const char letter : op.name) state = state * 31 + static_cast<unsigned char>(letter);
  for (const CaseInput& input : op.inputs) p.inputs.push_back(random_array(input, state));
  if (op.prepare) op.prepare(p.inputs);
  p.expected = op.reference(p.inputs);
  for (const Array& output : p.expected) {
    CaseInput random{"cotangent", output.shape};
    p.cotangents.push_back(random_array(random, state).values);
  }
  Arena arena;
  arena.poison(true);
  p.exact = run_pass(arena, op, p.inputs, p.cotangents, Dtype::f64, false, 0.0);
  for (const Array& output : p.expected) p.scale = std::max(p.scale, largest(output.values));
  for (const auto& gradient : p.exact.gradients) p.gradient_scale = std::max(p.gradient_scale, largest(gradient));
  return p;
}

/// One precision and layout: `pass` and `again` of the same problem, `added` to gradients of 0.25.
void compare_passes(std::vector<std::string>& faults, const OpCase& op, const Problem& p, const std::string& how,
                    double tolerance, const Pass& pass, const Pass& again, const Pass& added) {
  for (std::size_t o = 0; o < p.expected.size(); ++o) {
    const std::string what = fmt::format("{} output {}", how, o);
    compare(faults, what, pass.outputs[o], p.expected[o].values, tolerance, p.scale);
    if (pass.outputs[o] != again.outputs[o]) faults.push_back(what + ": other bits the second time");
  }
  for (std::size_t i = 0; i < p.inputs.size(); ++i) {
    if (p.exact.gradients[i].empty()) continue;
    const std::string what = fmt::format("{} gradient of {}", how, op.inputs[i].name);
    compare(faults, what, pass.gradients[i], p.exact.gradients[i], tolerance, p.gradient_scale);
    if (pass.gradients[i] != again.gradients[i]) faults.push_back(what + ": other bits the second time");
    std::vector<double> sum = p.exact.gradients[i];
    for (double& value : sum) value += 0.25;
    compare(faults, what + " added to 0.25", added.gradients[i], sum, tolerance, p.gradient_scale);
  }
}

}  // namespace

std::vector<std::string> check_case(const OpCase& op) {
  std::vector<std::string> faults;
  const Problem p = problem_of(op);
  if (p.exact.outputs.size() != p.expected.size()) {
    faults.push_back(fmt::format("{} outputs, the reference has {}", p.exact.outputs.size(), p.expected.size()));
    return faults;
  }
  for (std::size_t o = 0; o < p.expected.size(); ++o)
    compare(faults, fmt::format("f64 output {}", o), p.exact.outputs[o], p.expected[o].values, 1e-10, p.scale);
  compare_differences(faults, op, p.inputs, p.cotangents, p.exact.gradients);

  Arena arena;
  arena.poison(true);
  for (const bool strided : {false, true}) {
    for (const Dtype dtype : {Dtype::f64, Dtype::f32}) {
      const auto run = [&](double seed_gradient) {
        return run_pass(arena, op, p.inputs, p.cotangents, dtype, strided, seed_gradient);
      };
      compare_passes(faults, op, p, fmt::format("{}{}", strided ? "strided " : "", name_of(dtype)),
                     dtype == Dtype::f64 ? 1e-10 : op.tolerance, run(0.0), run(0.0), run(0.25));
    }
  }
  return faults;
}

namespace {

/// One precision and layout on a device, three passes.
void check_passes_on(std::vector<std::string>& faults, Arena& arena, const OpCase& op, const Problem& p, Dtype dtype,
                     bool strided, double tolerance, ProductPrecision products, FunctionRef<void(int)> before_pass,
                     bool library = false) {
  std::vector<Pass> passes;
  for (int pass = 0; pass < 3; ++pass) {
    before_pass(pass);
    passes.push_back(run_pass(arena, op, p.inputs, p.cotangents, dtype, strided, pass == 2 ? 0.25 : 0.0, products, library));
  }
  compare_passes(faults, op, p, fmt::format("{} {}{}", arena.device()->name(), strided ? "strided " : "", name_of(dtype)),
                 tolerance, passes[0], passes[1], passes[2]);
}

}  // namespace

std::vector<std::string> check_case_on(Device& device, const OpCase& op, FunctionRef<void(int)> before_pass) {
  std::vector<std::string> faults;
  const Problem p = problem_of(op);
  Arena arena(&device);
  arena.poison(true);
  for (const bool strided : {false, true})
    for (const Dtype dtype : {Dtype::f64, Dtype::f32})
      check_passes_on(faults, arena, op, p, dtype, strided, dtype == Dtype::f64 ? 1e-10 : op.tolerance,
                      ProductPrecision::full, before_pass);
  return faults;
}

std::vector<std::string> check_case_in_bf16_on(Device& device, const OpCase& op, double tolerance,
                                               FunctionRef<void(int)> before_pass, bool library) {
  std::vector<std::string> faults;
  const Problem p = problem_of(op);
  Arena arena(&device);
  arena.poison(true);
  check_passes_on(faults, arena, op, p, Dtype::f32, true, tolerance, ProductPrecision::bf16, before_pass, library);
  return faults;
}

}  // namespace phasor::ops
