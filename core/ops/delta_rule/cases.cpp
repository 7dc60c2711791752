#include <cmath>
#include <limits>

#include "core/ops/case.h"
#include "core/ops/delta_rule/delta_rule.h"

namespace phasor::ops {

namespace {

struct Options {
  std::int64_t batch = 1, time = 1, heads = 1, group = 1, key = 1, value = 1, chunk = 0;
  bool beta = true, decay = false, state_in = false, want_state = true, packed = false;
  double largest_beta = 1.0, strongest = -1.0;  // of beta, and of the log decays
  std::int64_t forgets_every = 0;               // so many steps one has log decay minus infinity; 0: none
  double apart = 0.0;                           // > 0: keys are all the same but for so much
  bool unit = false;                            // keys of length 1, all of them: no step lengthens the state
};

std::size_t size(std::int64_t x) { return static_cast<std::size_t>(x); }

/// Where the optional inputs stand.
struct Places {
  std::size_t beta = 3, decay, state_in, starts;
  explicit Places(const Options& at)
      : decay(beta + at.beta), state_in(decay + at.decay), starts(state_in + at.state_in) {}
};

/// The recurrence, column by column of the state.
std::vector<Array> plain(std::span<const Array> in, const Options& at, double scale) {
  const std::int64_t value_heads = at.heads * at.group;
  const Places places(at);
  const Array* starts = at.packed ? &in[places.starts] : nullptr;
  Array o{{at.batch, at.time, value_heads, at.value}, std::vector<double>(in[2].values.size())};
  Array last{{at.batch, value_heads, at.key, at.value},
             std::vector<double>(size(at.batch * value_heads * at.key * at.value))};
  for (std::int64_t b = 0; b < at.batch; ++b)
    for (std::int64_t h = 0; h < value_heads; ++h)
      for (std::int64_t j = 0; j < at.value; ++j) {
        const auto corner = [&](std::int64_t i) { return size(((b * value_heads + h) * at.key + i) * at.value + j); };
        std::vector<double> state(size(at.key), 0.0);
        for (std::int64_t i = 0; i < at.key && at.state_in; ++i) state[size(i)] = in[places.state_in].values[corner(i)];
        for (std::int64_t t = 0; t < at.time; ++t) {
          if (document_start(starts, b, t) == t) state.assign(size(at.key), 0.0);
          const std::size_t step = size((b * at.time + t) * value_heads + h);
          const std::size_t keys = size(((b * at.time + t) * at.heads + h / at.group) * at.key);
          const double* q = in[0].values.data() + keys;
          const double* k = in[1].values.data() + keys;
          double read = 0.0, sum = 0.0;
          for (std::int64_t i = 0; i < at.key; ++i) {
            if (at.decay) state[size(i)] *= std::exp(in[places.decay].values[step]);
            read += state[size(i)] * k[i];
          }
          const double beta = at.beta ? in[places.beta].values[step] : 1.0;
          const double u = beta * (in[2].values[step * size(at.value) + size(j)] - read);
          for (std::int64_t i = 0; i < at.key; ++i) sum += q[i] * (state[size(i)] += k[i] * u);
          o.values[step * size(at.value) + size(j)] = scale * sum;
        }
        for (std::int64_t i = 0; i < at.key; ++i) last.values[corner(i)] = state[size(i)];
      }
  std::vector<Array> out{std::move(o)};
  if (at.want_state) out.push_back(std::move(last));
  return out;
}

/// Keys of length 1, but for every seventh, which keeps the length that it has unless `all`.
void shorten(Array& keys, bool all) {
  const std::size_t width = size(keys.shape[-1]);
  for (std::size_t at = 0; at < keys.values.size(); at += width) {
    if (!all && at / width % 7 == 6) continue;
    double square = 0.0;
    for (std::size_t i = at; i < at + width; ++i) square += keys.values[i] * keys.values[i];
    for (std::size_t i = at; i < at + width; ++i) keys.values[i] /= std::sqrt(square);
  }
}

/// All keys like the first one, but for a part of their own.
void bring_together(Array& keys, double apart) {
  const std::size_t width = size(keys.shape[-1]);
  for (std::size_t i = width; i < keys.values.size(); ++i)
    keys.values[i] = keys.values[i % width] + apart * keys.values[i];
}

OpCase make(const std::string& name, const Options& at) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(at.key));
  const std::int64_t value_heads = at.heads * at.group;
  const Places places(at);
  OpCase op;
  op.name = "delta_rule_" + name;
  op.inputs = {{"q", {at.batch, at.time, at.heads, at.key}},
               {"k", {at.batch, at.time, at.heads, at.key}},
               {"v", {at.batch, at.time, value_heads, at.value}}};
  if (at.beta) op.inputs.push_back({"beta", {at.batch, at.time, value_heads}, 0.0, at.largest_beta});
  if (at.decay) op.inputs.push_back({"log_decay", {at.batch, at.time, value_heads}, at.strongest, 0.0});
  if (at.state_in) op.inputs.push_back({"state_in", {at.batch, value_heads, at.key, at.value}});
  if (at.packed) op.inputs.push_back(packed_starts(at.batch, at.time));
  op.prepare = [=](std::vector<Array>& in) {
    if (at.apart > 0.0) bring_together(in[1], at.apart);
    shorten(in[1], at.unit);
    for (std::size_t i = 0; at.forgets_every > 0 && i < in[places.decay].values.size(); ++i)
      if (i % size(at.forgets_every) == 2) in[places.decay].values[i] = -std::numeric_limits<double>::infinity();
    if (at.packed) prepare_starts(in[places.starts]);
  };
  op.run = [=](Tape& tape, std::span<const Tensor> in) {
    const auto given = [&](bool there, std::size_t place) { return there ? in[place] : Tensor(); };
    const DeltaRuleResult result =
        delta_rule(tape, in[0], in[1], in[2], given(at.beta, places.beta), given(at.decay, places.decay), scale,
                   given(at.state_in, places.state_in), at.want_state, at.chunk, given(at.packed, places.starts));
    return at.want_state ? std::vector{result.o, result.state} : std::vector{result.o};
  };
  op.reference = [=](std::span<const Array> in) { return plain(in, at, scale); };
  return op;
}

}  // namespace

std::vector<OpCase> delta_rule_cases() {
  std::vector<OpCase> cases;
  for (const bool decay : {false, true}) {
    const std::string kind = decay ? "gated_" : "";
    const auto add = [&](const std::string& name, Options at) {
      at.decay = decay;
      cases.push_back(make(kind + name, at));
    };
    for (const std::int64_t time : {0, 1, 2, 3, 7, 15, 16, 17, 33, 63, 64, 65})
      add("time_" + std::to_string(time), {.time = time, .key = 8, .value = 8, .state_in = true});
    for (const std::int64_t chunk : {1, 5, 7, 16, 37, 64})
      add("chunk_" + std::to_string(chunk),
          {.batch = 2, .time = 37, .heads = 2, .key = 8, .value = 8, .chunk = chunk, .state_in = true});
    for (const std::int64_t chunk : {0, 1, 5, 16})
      add("packed_chunk_" + std::to_string(chunk), {.batch = 3,
                                                    .time = 37,
                                                    .heads = 2,
                                                    .key = 7,
                                                    .value = 13,
                                                    .chunk = chunk,
                                                    .state_in = true,
                                                    .packed = true});
    add("no_batch", {.batch = 0, .time = 5, .key = 4, .value = 4});
    add("one_by_one", {.batch = 2, .time = 7, .state_in = true});
    add("odd", {.batch = 2, .time = 19, .heads = 3, .key = 7, .value = 13, .chunk = 8, .state_in = true});
    add("no_state", {.batch = 2, .time = 20, .heads = 2, .key = 16, .value = 16, .want_state = false});
    add("no_beta", {.time = 20, .heads = 2, .key = 16, .value = 8, .beta = false, .state_in = true});
    add("negative", {.time = 40, .heads = 2, .key = 8, .value = 16, .state_in = true, .largest_beta = 2.0});
    add("grouped",
        {.batch = 2, .time = 21, .heads = 2, .group = 3, .key = 12, .value = 10, .chunk = 8, .state_in = true});
    add("packed_grouped", {.batch = 2, .time = 33, .heads = 1, .group = 2, .key = 8, .value = 16, .packed = true});
    add("packed_no_time", {.batch = 2, .time = 0, .state_in = true, .packed = true});
    add("width_32", {.time = 20, .heads = 2, .key = 32, .value = 32, .state_in = true});
    add("wide_keys", {.time = 11, .key = 65, .value = 9, .chunk = 8, .state_in = true});
    add("wide_values", {.time = 11, .key = 5, .value = 65, .chunk = 8, .state_in = true});
    add("long", {.batch = 2, .time = 150, .key = 8, .value = 8, .state_in = true});
    add("long_negative",
        {.time = 130, .key = 16, .value = 16, .state_in = true, .largest_beta = 2.0, .unit = true});
    add("long_packed", {.batch = 2, .time = 150, .key = 8, .value = 8, .state_in = true, .packed = true});
    add("long_grouped", {.time = 70, .group = 2, .key = 24, .value = 16, .state_in = true, .unit = true});
    add("width_64", {.time = 66, .heads = 2, .key = 64, .value = 64, .state_in = true, .unit = true});
    add("width_128", {.time = 66, .key = 128, .value = 128, .unit = true});
    add("widest_keys", {.time = 17, .key = 136, .value = 3, .state_in = true, .unit = true});
    add("same_keys", {.time = 66, .key = 16, .value = 16, .state_in = true, .apart = 0.1, .unit = true});
    add("same_keys_negative", {.time = 66,
                               .key = 16,
                               .value = 16,
                               .state_in = true,
                               .largest_beta = 2.0,
                               .apart = 0.3,
                               .unit = true});
  }
  cases.push_back(make(
      "gated_strong_long",
      {.time = 80, .heads = 2, .key = 8, .value = 8, .decay = true, .state_in = true, .strongest = -40.0}));
  cases.push_back(make("gated_forgets", {.batch = 2,
                                         .time = 80,
                                         .heads = 2,
                                         .key = 8,
                                         .value = 8,
                                         .decay = true,
                                         .state_in = true,
                                         .forgets_every = 37}));
  cases.push_back(
      make("gated_strong",
           {.time = 40, .heads = 2, .key = 8, .value = 8, .decay = true, .state_in = true, .strongest = -40.0}));
  return cases;
}

}  // namespace phasor::ops
