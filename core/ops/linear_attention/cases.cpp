#include <cmath>

#include "core/graph/transfer.h"
#include "core/ops/case.h"
#include "core/ops/linear_attention/linear_attention.h"

namespace phasor::ops {

namespace {

enum class Decay { none, per_step, per_head };

struct Options {
  std::int64_t batch = 2, time = 21, heads = 2, group = 1, key = 5, value = 6;
  Decay decay = Decay::none;
  bool normalise = false, state = true, packed = false;
  double strongest = -1.0;
};

/// The decay of head h of H where it is one constant per head.
double fixed_decay(std::int64_t h) { return -0.3 / static_cast<double>(1 + h); }

/// Sums over pairs of tokens, without a running state: weights e^{sum of decays} scale q_i.k_j.
std::vector<Array> plain(std::span<const Array> in, const Options& at, double scale) {
  const auto place = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  const std::int64_t query_heads = at.heads * at.group;
  std::size_t next = 3;
  const Array* steps = at.decay == Decay::per_step ? &in[next++] : nullptr;
  const Array* state_in = at.state ? &in[next++] : nullptr;
  const Array* sum_in = at.state && at.normalise ? &in[next++] : nullptr;
  const Array* starts = at.packed ? &in[next] : nullptr;
  const auto decay = [&](std::int64_t b, std::int64_t t, std::int64_t h) {
    if (at.decay == Decay::none) return 0.0;
    return steps == nullptr ? fixed_decay(h) : steps->values[place((b * at.time + t) * at.heads + h)];
  };
  Array o{{at.batch, at.time, query_heads, at.value},
          std::vector<double>(place(at.batch * at.time * query_heads * at.value))};
  Array state{{at.batch, at.heads, at.key, at.value},
              std::vector<double>(place(at.batch * at.heads * at.key * at.value))};
  Array sum{{at.batch, at.heads, at.key}, std::vector<double>(place(at.batch * at.heads * at.key))};
  // What a reader at time t sees of channel i of head h: values, and one more column of ones.
  const auto seen = [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t i) {
    std::vector<double> row(place(at.value + 1));
    double weight = 1.0;
    std::int64_t j = t;
    const std::int64_t first = t >= 0 ? document_start(starts, b, t) : -1;
    for (; j >= 0 && j >= first; --j) {
      const double k = in[1].values[place(((b * at.time + j) * at.heads + h) * at.key + i)];
      for (std::int64_t c = 0; c < at.value; ++c)
        row[place(c)] += weight * k * in[2].values[place(((b * at.time + j) * at.heads + h) * at.value + c)];
      row.back() += weight * k;
      weight *= std::exp(decay(b, j, h));
    }
    if (j >= first && state_in != nullptr)  // the document began before the piece
      for (std::int64_t c = 0; c < at.value; ++c)
        row[place(c)] += weight * state_in->values[place(((b * at.heads + h) * at.key + i) * at.value + c)];
    if (j >= first && sum_in != nullptr) row.back() += weight * sum_in->values[place((b * at.heads + h) * at.key + i)];
    return row;
  };
  for (std::int64_t b = 0; b < at.batch; ++b)
    for (std::int64_t h = 0; h < at.heads; ++h) {
      for (std::int64_t t = 0; t < at.time; ++t)
        for (std::int64_t i = 0; i < at.key; ++i) {
          const std::vector<double> row = seen(b, h, t, i);
          for (std::int64_t g = 0; g < at.group; ++g) {
            const std::int64_t token = (b * at.time + t) * query_heads + h * at.group + g;
            for (std::int64_t c = 0; c < at.value; ++c)
              o.values[place(token * at.value + c)] += scale * in[0].values[place(token * at.key + i)] * row[place(c)];
          }
        }
      for (std::int64_t t = 0; at.normalise && t < at.time; ++t)
        for (std::int64_t g = 0; g < at.group; ++g) {
          const std::int64_t token = (b * at.time + t) * query_heads + h * at.group + g;
          double divisor = 1e-10;
          for (std::int64_t i = 0; i < at.key; ++i)
            divisor += scale * in[0].values[place(token * at.key + i)] * seen(b, h, t, i).back();
          for (std::int64_t c = 0; c < at.value; ++c) o.values[place(token * at.value + c)] /= divisor;
        }
      for (std::int64_t i = 0; i < at.key; ++i) {
        const std::vector<double> row = seen(b, h, at.time - 1, i);
        for (std::int64_t c = 0; c < at.value; ++c)
          state.values[place(((b * at.heads + h) * at.key + i) * at.value + c)] = row[place(c)];
        sum.values[place((b * at.heads + h) * at.key + i)] = row.back();
      }
    }
  std::vector<Array> out{std::move(o)};
  if (at.state) out.push_back(std::move(state));
  if (at.state && at.normalise) out.push_back(std::move(sum));
  return out;
}

OpCase make(const std::string& name, const Options& at) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(at.key));
  // A normaliser far from zero: features are positive there.
  const double low = at.normalise ? 0.1 : -1.0;
  OpCase op;
  op.name = "linear_attention_" + name;
  op.inputs = {{"q", {at.batch, at.time, at.heads * at.group, at.key}, low},
               {"k", {at.batch, at.time, at.heads, at.key}, low},
               {"v", {at.batch, at.time, at.heads, at.value}}};
  if (at.decay == Decay::per_step) op.inputs.push_back({"log_decay", {at.batch, at.time, at.heads}, at.strongest, 0.0});
  if (at.state) op.inputs.push_back({"state_in", {at.batch, at.heads, at.key, at.value}});
  if (at.state && at.normalise) op.inputs.push_back({"sum_in", {at.batch, at.heads, at.key}, 0.1});
  if (at.packed) {
    op.inputs.push_back(packed_starts(at.batch, at.time));
    op.prepare = [](std::vector<Array>& in) { prepare_starts(in.back()); };
  }
  op.run = [=](Tape& tape, std::span<const Tensor> in) {
    std::size_t next = 3;
    const auto maybe = [&](bool there) { return there ? in[next++] : Tensor(); };
    std::vector<double> fixed;
    for (std::int64_t h = 0; h < at.heads; ++h) fixed.push_back(fixed_decay(h));
    Tensor decay = maybe(at.decay == Decay::per_step);
    if (at.decay == Decay::per_head) {
      decay = tape.empty({at.heads}, Dtype::f64);
      put(tape.stream().device, Tensor::borrow(fixed.data(), Dtype::f64, {at.heads}), decay);
    }
    const Tensor state_in = maybe(at.state), sum_in = maybe(at.state && at.normalise), starts = maybe(at.packed);
    const LinearAttentionResult result =
        linear_attention(tape, in[0], in[1], in[2], decay, scale, at.normalise, state_in, sum_in, at.state, starts);
    std::vector<Tensor> out{result.o};
    if (at.state) out.push_back(result.state);
    if (at.state && at.normalise) out.push_back(result.sum);
    return out;
  };
  op.reference = [=](std::span<const Array> in) { return plain(in, at, scale); };
  return op;
}

}  // namespace

std::vector<OpCase> linear_attention_cases() {
  std::vector<OpCase> cases;
  for (const bool normalise : {false, true}) {
    const std::string name = normalise ? "normalised_" : "plain_";
    for (const std::int64_t time : {0, 1, 7, 64, 65})
      cases.push_back(make(name + "time_" + std::to_string(time),
                           {.batch = 1, .time = time, .heads = 1, .key = 3, .value = 4, .normalise = normalise}));
    for (const Decay decay : {Decay::none, Decay::per_step, Decay::per_head}) {
      const std::string kind = decay == Decay::none ? "none" : (decay == Decay::per_step ? "per_step" : "per_head");
      cases.push_back(make(name + "decay_" + kind, {.decay = decay, .normalise = normalise}));
      cases.push_back(
          make(name + "packed_" + kind, {.batch = 3, .decay = decay, .normalise = normalise, .packed = true}));
      cases.push_back(
          make(name + "grouped_" + kind, {.group = 3, .decay = decay, .normalise = normalise, .state = false}));
    }
    cases.push_back(make(name + "strong", {.decay = Decay::per_step, .normalise = normalise, .strongest = -30.0}));
    cases.push_back(
        make(name + "wide", {.batch = 1, .time = 9, .heads = 1, .key = 65, .value = 9, .normalise = normalise}));
    cases.push_back(make(name + "no_batch", {.batch = 0, .time = 5, .normalise = normalise}));
  }
  return cases;
}

}  // namespace phasor::ops
