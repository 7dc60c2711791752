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

void fill(const Tensor& to, const std::vector<double>& values) {
  for (std::int64_t r = 0; r < to.rows(); ++r)
    for (std::int64_t i = 0; i < to.width(); ++i) {
      const double value = values[static_cast<std::size_t>(r * to.width() + i)];
      switch (to.dtype()) {
        case Dtype::f32: row<float>(to.view(), r)[i] = static_cast<float>(value); break;
        case Dtype::f64: row<double>(to.view(), r)[i] = value; break;
        case Dtype::i32: row<std::int32_t>(to.view(), r)[i] = static_cast<std::int32_t>(value); break;
      }
    }
}

std::vector<double> read(const Tensor& from) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(from.size()));
  for (std::int64_t r = 0; r < from.rows(); ++r)
    for (std::int64_t i = 0; i < from.width(); ++i)
      values.push_back(from.dtype() == Dtype::f32   ? static_cast<double>(row<float>(from.view(), r)[i])
                       : from.dtype() == Dtype::f64 ? row<double>(from.view(), r)[i]
                                                    : static_cast<double>(row<std::int32_t>(from.view(), r)[i]));
  return values;
}

struct Pass {
  std::vector<std::vector<double>> outputs;
  std::vector<std::vector<double>> gradients;  // per input; empty when not differentiable
};

Pass run_pass(Arena& arena, const OpCase& op, const std::vector<Array>& inputs,
              const std::vector<std::vector<double>>& cotangents, Dtype dtype, bool strided, double seed_gradient) {
  Tape tape(arena, {dtype, nullptr}, true);
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
    fill(leaf, inputs[i].values);
    leaves.push_back(input.differentiable && input.indices == 0 ? tape.variable(leaf) : leaf);
  }
  const std::vector<Tensor> outputs = op.run(tape, leaves);
  Pass pass;
  for (const Tensor& output : outputs) pass.outputs.push_back(read(output));

  std::vector<std::pair<Tensor, Tensor>> seeds;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!tape.wants(outputs[i])) continue;
    const Tensor cotangent = tape.empty(outputs[i].shape(), outputs[i].dtype());
    fill(cotangent, cotangents[i]);
    seeds.emplace_back(outputs[i], cotangent);
  }
  if (seed_gradient != 0.0) {
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (!tape.wants(leaves[i])) continue;
      const Tensor there = tape.empty(leaves[i].shape(), leaves[i].dtype());
      fill(there, std::vector<double>(inputs[i].values.size(), seed_gradient));
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
    pass.gradients.push_back(gradient ? read(gradient)
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

}  // namespace

std::vector<std::string> check_case(const OpCase& op) {
  std::vector<std::string> faults;
  std::uint64_t state = 0x9a5e;
  for (const char letter : op.name) state = state * 31 + static_cast<unsigned char>(letter);
  std::vector<Array> inputs;
  for (const CaseInput& input : op.inputs) inputs.push_back(random_array(input, state));
  if (op.prepare) op.prepare(inputs);
  const std::vector<Array> expected = op.reference(inputs);
  std::vector<std::vector<double>> cotangents;
  for (const Array& output : expected) {
    CaseInput random{"cotangent", output.shape};
    cotangents.push_back(random_array(random, state).values);
  }

  Arena arena;
  arena.poison(true);
  const Pass exact = run_pass(arena, op, inputs, cotangents, Dtype::f64, false, 0.0);
  if (exact.outputs.size() != expected.size()) {
    faults.push_back(fmt::format("{} outputs, the reference has {}", exact.outputs.size(), expected.size()));
    return faults;
  }
  double scale = 0.0;
  for (const Array& output : expected) scale = std::max(scale, largest(output.values));
  double gradient_scale = 0.0;
  for (const auto& gradient : exact.gradients) gradient_scale = std::max(gradient_scale, largest(gradient));
  for (std::size_t o = 0; o < expected.size(); ++o)
    compare(faults, fmt::format("f64 output {}", o), exact.outputs[o], expected[o].values, 1e-10, scale);
  compare_differences(faults, op, inputs, cotangents, exact.gradients);

  for (const bool strided : {false, true}) {
    const std::string how = strided ? "strided " : "";
    for (const Dtype dtype : {Dtype::f64, Dtype::f32}) {
      const double tolerance = dtype == Dtype::f64 ? 1e-10 : op.tolerance;
      const Pass pass = run_pass(arena, op, inputs, cotangents, dtype, strided, 0.0);
      const Pass again = run_pass(arena, op, inputs, cotangents, dtype, strided, 0.0);
      const Pass added = run_pass(arena, op, inputs, cotangents, dtype, strided, 0.25);
      for (std::size_t o = 0; o < expected.size(); ++o) {
        const std::string what = fmt::format("{}{} output {}", how, name_of(dtype), o);
        compare(faults, what, pass.outputs[o], expected[o].values, tolerance, scale);
        if (pass.outputs[o] != again.outputs[o]) faults.push_back(what + ": other bits the second time");
      }
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (exact.gradients[i].empty()) continue;
        const std::string what = fmt::format("{}{} gradient of {}", how, name_of(dtype), op.inputs[i].name);
        compare(faults, what, pass.gradients[i], exact.gradients[i], tolerance, gradient_scale);
        if (pass.gradients[i] != again.gradients[i]) faults.push_back(what + ": other bits the second time");
        std::vector<double> sum = exact.gradients[i];
        for (double& value : sum) value += 0.25;
        compare(faults, what + " added to 0.25", added.gradients[i], sum, tolerance, gradient_scale);
      }
    }
  }
  return faults;
}

}  // namespace phasor::ops
