#include <cmath>
#include <limits>

#include "core/ops/case.h"
#include "core/ops/gla/gla.h"

namespace phasor::ops {

namespace {

struct Options {
  std::int64_t batch = 1, time = 1, heads = 1, group = 1, key = 1, value = 1, chunk = 0;
  bool state_in = false, want_state = true, packed = false;
  double weakest = -0.01, strongest = -1.0;       // range of the log gates
  std::int64_t strong_step = -1;                  // this step has log gate -60 in every channel
  bool closed = false;                            // some gates are minus infinity, at one step all of them
  bool only_state = false, only_queries = false;  // what is used, and what has a gradient
};

/// The recurrence, one element after the other.
std::vector<Array> plain(std::span<const Array> in, const Options& at, double scale) {
  const std::int64_t query_heads = at.heads * at.group;
  const auto size = [](std::int64_t x) { return static_cast<std::size_t>(x); };
  const Array* starts = at.packed ? &in.back() : nullptr;
  Array o{{at.batch, at.time, query_heads, at.value},
          std::vector<double>(size(at.batch * at.time * query_heads * at.value))};
  Array last{{at.batch, at.heads, at.key, at.value},
             std::vector<double>(size(at.batch * at.heads * at.key * at.value))};
  for (std::int64_t b = 0; b < at.batch; ++b)
    for (std::int64_t h = 0; h < query_heads; ++h) {
      const std::int64_t shared = h / at.group, state_at = (b * at.heads + shared) * at.key * at.value;
      for (std::int64_t j = 0; j < at.value; ++j) {
        std::vector<double> state(size(at.key), 0.0);
        if (at.state_in)
          for (std::int64_t i = 0; i < at.key; ++i) state[size(i)] = in[4].values[size(state_at + i * at.value + j)];
        for (std::int64_t t = 0; t < at.time; ++t) {
          if (document_start(starts, b, t) == t) state.assign(size(at.key), 0.0);
          const std::int64_t token = b * at.time + t, keys = (token * at.heads + shared) * at.key;
          const double v = in[2].values[size((token * at.heads + shared) * at.value + j)];
          double sum = 0.0;
          for (std::int64_t i = 0; i < at.key; ++i) {
            double& x = state[size(i)];
            x = std::exp(in[3].values[size(keys + i)]) * x + in[1].values[size(keys + i)] * v;
            sum += x * in[0].values[size((token * query_heads + h) * at.key + i)];
          }
          o.values[size((token * query_heads + h) * at.value + j)] = scale * sum;
        }
        for (std::int64_t i = 0; i < at.key; ++i) last.values[size(state_at + i * at.value + j)] = state[size(i)];
      }
    }
  std::vector<Array> out;
  if (!at.only_state) out.push_back(std::move(o));
  if (at.want_state) out.push_back(std::move(last));
  return out;
}

OpCase make(const std::string& name, const Options& at) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(at.key));
  OpCase op;
  op.name = "gla_" + name;
  op.inputs = {{"q", {at.batch, at.time, at.heads * at.group, at.key}},
               {"k", {at.batch, at.time, at.heads, at.key}},
               {"v", {at.batch, at.time, at.heads, at.value}},
               {"log_gate", {at.batch, at.time, at.heads, at.key}, at.strongest, at.weakest}};
  if (at.state_in) op.inputs.push_back({"state_in", {at.batch, at.heads, at.key, at.value}});
  if (at.only_queries)
    for (std::size_t i = 1; i < op.inputs.size(); ++i) op.inputs[i].differentiable = false;
  if (at.packed) {
    op.inputs.push_back(packed_starts(at.batch, at.time));
    op.prepare = [](std::vector<Array>& in) { prepare_starts(in.back()); };
  }
  op.run = [=](Tape& tape, std::span<const Tensor> in) {
    const GlaResult result = gla(tape, in[0], in[1], in[2], in[3], scale, at.state_in ? in[4] : Tensor(), at.want_state,
                                 at.chunk, at.packed ? in.back() : Tensor());
    if (at.only_state) return std::vector{result.state};
    return at.want_state ? std::vector{result.o, result.state} : std::vector{result.o};
  };
  op.reference = [=](std::span<const Array> in) { return plain(in, at, scale); };
  if (at.strong_step >= 0) {
    op.prepare = [=](std::vector<Array>& in) {
      const std::int64_t row = at.heads * at.key;
      for (std::int64_t b = 0; b < at.batch; ++b)
        for (std::int64_t i = 0; i < row; ++i)
          in[3].values[static_cast<std::size_t>((b * at.time + at.strong_step) * row + i)] = -60.0;
    };
  }
  if (at.closed) {
    op.prepare = [=](std::vector<Array>& in) {
      const std::int64_t row = at.heads * at.key;
      for (std::int64_t e = 0; e < at.batch * at.time * row; ++e)
        if (e / row % at.time == at.time / 2 || e % 23 == 0)
          in[3].values[static_cast<std::size_t>(e)] = -std::numeric_limits<double>::infinity();
    };
  }
  return op;
}

}  // namespace

std::vector<OpCase> gla_cases() {
  std::vector<OpCase> cases;
  for (const std::int64_t time : {0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 129})
    cases.push_back(make("time_" + std::to_string(time), {.time = time, .key = 8, .value = 8, .state_in = true}));
  for (const std::int64_t chunk : {1, 5, 16, 37, 64})
    cases.push_back(
        make("chunk_" + std::to_string(chunk),
             {.batch = 2, .time = 37, .heads = 2, .key = 16, .value = 16, .chunk = chunk, .state_in = true}));
  cases.push_back(make("no_batch", {.batch = 0, .time = 5, .key = 4, .value = 4}));
  cases.push_back(make("one_by_one", {.batch = 2, .time = 7, .state_in = true}));
  cases.push_back(make("no_state", {.batch = 2, .time = 20, .heads = 3, .key = 16, .value = 16, .want_state = false}));
  cases.push_back(make("state_out_only_zeros_in", {.time = 20, .heads = 2, .key = 16, .value = 24}));
  cases.push_back(
      make("odd", {.batch = 2, .time = 37, .heads = 3, .key = 7, .value = 13, .chunk = 16, .state_in = true}));
  cases.push_back(make("wide_keys", {.time = 19, .key = 65, .value = 9, .chunk = 8, .state_in = true}));
  cases.push_back(make("wide_values", {.time = 19, .key = 5, .value = 65, .chunk = 8, .state_in = true}));
  cases.push_back(make("width_32", {.time = 40, .heads = 2, .key = 32, .value = 32, .chunk = 16, .state_in = true}));
  cases.push_back(make("width_64", {.time = 20, .key = 64, .value = 64, .chunk = 8, .state_in = true}));
  cases.push_back(make("width_128", {.time = 5, .key = 128, .value = 128, .chunk = 2}));
  cases.push_back(
      make("grouped",
           {.batch = 2, .time = 21, .heads = 2, .group = 3, .key = 12, .value = 10, .chunk = 8, .state_in = true}));
  cases.push_back(make("one_shared_head",
                       {.batch = 2, .time = 21, .heads = 1, .group = 4, .key = 8, .value = 8, .want_state = false}));
  cases.push_back(make("weak_gates", {.time = 65,
                                      .heads = 2,
                                      .key = 16,
                                      .value = 16,
                                      .chunk = 16,
                                      .state_in = true,
                                      .weakest = 0.0,
                                      .strongest = -1e-3}));
  cases.push_back(make("strong_gates", {.time = 65,
                                        .heads = 2,
                                        .key = 16,
                                        .value = 16,
                                        .chunk = 16,
                                        .state_in = true,
                                        .weakest = -1.0,
                                        .strongest = -40.0}));
  cases.push_back(make("single_strong_step", {.time = 65,
                                              .heads = 2,
                                              .key = 16,
                                              .value = 16,
                                              .chunk = 16,
                                              .state_in = true,
                                              .weakest = 0.0,
                                              .strongest = -0.05,
                                              .strong_step = 20}));
  for (const std::int64_t chunk : {0, 1, 5, 16})
    cases.push_back(make(
        "packed_chunk_" + std::to_string(chunk),
        {.batch = 3, .time = 37, .heads = 2, .key = 7, .value = 13, .chunk = chunk, .state_in = true, .packed = true}));
  cases.push_back(make("packed_grouped", {.batch = 2,
                                          .time = 40,
                                          .heads = 2,
                                          .group = 3,
                                          .key = 8,
                                          .value = 16,
                                          .chunk = 8,
                                          .state_in = true,
                                          .packed = true}));
  cases.push_back(
      make("packed_no_state", {.batch = 2, .time = 33, .key = 16, .value = 16, .want_state = false, .packed = true}));
  // Chunks of 64 steps, strips of 16, parts of 64 channels (chunk_cuda.h): what falls on their edges and between.
  cases.push_back(make(
      "long_packed_grouped",
      {.batch = 2, .time = 150, .heads = 2, .group = 2, .key = 20, .value = 24, .state_in = true, .packed = true}));
  cases.push_back(make("long_width_128", {.time = 70, .key = 128, .value = 128, .state_in = true}));
  cases.push_back(make("long_parts", {.time = 81, .heads = 2, .key = 72, .value = 100, .state_in = true}));
  cases.push_back(
      make("long_weak",
           {.time = 200, .heads = 2, .key = 16, .value = 16, .state_in = true, .weakest = 0.0, .strongest = -1e-3}));
  cases.push_back(make("long_strong",
                       {.time = 130, .key = 16, .value = 16, .state_in = true, .weakest = -1.0, .strongest = -40.0}));
  cases.push_back(
      make("closed", {.batch = 2, .time = 99, .heads = 2, .key = 16, .value = 16, .state_in = true, .closed = true}));
  cases.push_back(make("only_state", {.time = 80, .group = 2, .key = 16, .value = 16, .only_state = true}));
  cases.push_back(make("only_queries", {.time = 80, .key = 16, .value = 16, .only_queries = true}));
  cases.push_back(make("packed_no_time", {.batch = 2, .time = 0, .state_in = true, .packed = true}));
  return cases;
}

}  // namespace phasor::ops
