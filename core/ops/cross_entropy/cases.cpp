#include <cmath>

#include "core/ops/case.h"
#include "core/ops/cross_entropy/cross_entropy.h"

namespace phasor::ops {

namespace {

std::vector<Array> plain(const Array& logits, const Array& targets) {
  const std::int64_t rows = logits.shape[0];
  const auto vocabulary = static_cast<std::size_t>(logits.shape[1]);
  Array loss{{rows}, {}}, correct{{rows}, {}};
  for (std::size_t r = 0; r < targets.values.size(); ++r) {
    if (targets.values[r] < 0.0) {
      loss.values.push_back(0.0);
      correct.values.push_back(0.0);
      continue;
    }
    const auto target = static_cast<std::size_t>(targets.values[r]);
    const double* z = logits.values.data() + r * vocabulary;
    std::size_t best = 0;
    for (std::size_t v = 1; v < vocabulary; ++v)
      if (z[v] > z[best]) best = v;
    double odds = 0.0;  // sum over v of p_v / p_target
    for (std::size_t v = 0; v < vocabulary; ++v) odds += std::exp(z[v] - z[target]);
    loss.values.push_back(std::log(odds));
    correct.values.push_back(best == target ? 1.0 : 0.0);
  }
  return {loss, correct};
}

OpCase make(const std::string& name, std::int64_t rows, std::int64_t vocabulary, bool ignored, double size = 2.0) {
  OpCase op;
  op.name = "cross_entropy_" + name;
  op.inputs.push_back({"logits", {rows, vocabulary}, -size, size});
  op.inputs.push_back({"targets", {rows}, 0.0, 0.0, vocabulary, ignored});
  op.run = [](Tape& tape, std::span<const Tensor> in) {
    Tensor correct;
    const Tensor loss = cross_entropy(tape, in[0], in[1], &correct);
    return std::vector{loss, correct};
  };
  op.reference = [](std::span<const Array> in) { return plain(in[0], in[1]); };
  return op;
}

OpCase all_ignored() {
  OpCase op = make("all_ignored", 7, 8, true);
  op.prepare = [](std::vector<Array>& in) { in[1].values.assign(in[1].values.size(), -100.0); };
  return op;
}

OpCase without_correct() {
  OpCase op = make("without_correct", 7, 9, true);
  op.run = [](Tape& tape, std::span<const Tensor> in) { return std::vector{cross_entropy(tape, in[0], in[1])}; };
  op.reference = [](std::span<const Array> in) { return std::vector{plain(in[0], in[1])[0]}; };
  return op;
}

// Rows whose two largest logits are equal, bit for bit: the first counts as the answer. Without gradients, since a
// difference would decide the tie.
OpCase ties() {
  OpCase op = make("ties", 8, 40, false);
  op.inputs[0].differentiable = false;
  op.prepare = [](std::vector<Array>& in) {
    for (std::size_t r = 0; r < 8; ++r) {
      const std::size_t first = 3 * r, second = first + 1 + 2 * r;
      in[0].values[40 * r + first] = in[0].values[40 * r + second] = 3.0;
      in[1].values[r] = static_cast<double>(r % 2 == 0 ? first : second);
    }
  };
  return op;
}

}  // namespace

std::vector<OpCase> cross_entropy_cases() {
  return {make("no_rows", 0, 8, false),
          make("one_class", 1, 1, false),
          make("two", 7, 2, true),
          make("odd", 65, 7, true),
          make("even", 64, 64, true),
          make("wide", 7, 65, false),
          make("wider", 3, 1000, true),
          make("large", 7, 33, true, 20),
          make("huge", 7, 8, false, 400),
          all_ignored(),
          without_correct(),
          ties()};
}

}  // namespace phasor::ops
