#include <algorithm>
#include <cmath>

#include "core/graph/transfer.h"
#include "core/ops/attention/attention.h"
#include "core/ops/case.h"

namespace phasor::ops {

namespace {

struct Options {
  std::int64_t batch = 1, time = 1, past = 0, heads = 1, group = 1, key = 1, value = 1;
  std::int64_t window = 0;
  bool causal = true, slopes = false, decay = false;
  std::vector<std::int64_t> starts = {};  // of one row of the batch; later rows begin one token later
  double strongest = -1.0;           // range of the log-decay
};

std::size_t place(std::int64_t at) { return static_cast<std::size_t>(at); }

std::int64_t start_of(const Options& at, std::int64_t batch, std::int64_t t) {
  if (at.starts.empty()) return -at.past;
  const std::int64_t start = at.starts[place(t)];
  return std::min(t, start + (start > 0 && t > 0 ? batch : 0));
}

std::vector<double> slopes_of(const Options& at) {
  std::vector<double> slopes;
  for (std::int64_t h = 0; h < at.heads * at.group && at.slopes; ++h) slopes.push_back(0.3 / static_cast<double>(h + 1));
  return slopes;
}

/// The definition, one score after the other.
std::vector<Array> plain(std::span<const Array> in, const Options& at, double scale) {
  const std::int64_t query_heads = at.heads * at.group, keys = at.past + at.time;
  const std::vector<double> slopes = slopes_of(at);
  Array o{{at.batch, at.time, query_heads, at.value}, {}};
  o.values.resize(place(at.batch * at.time * query_heads * at.value));
  for (std::int64_t b = 0; b < at.batch; ++b)
    for (std::int64_t h = 0; h < query_heads; ++h)
      for (std::int64_t t = 0; t < at.time; ++t) {
        const std::int64_t own = at.past + t, row = (b * at.time + t) * query_heads + h;
        std::vector<double> scores(place(keys), -INFINITY);
        for (std::int64_t j = 0; j < keys; ++j) {
          const bool seen = (!at.causal || j <= own) && (at.window == 0 || own - j < at.window) &&
                            j >= at.past + start_of(at, b, t);
          if (!seen) continue;
          double sum = 0.0;
          const std::int64_t key = (b * keys + j) * at.heads + h / at.group;
          for (std::int64_t i = 0; i < at.key; ++i)
            sum += in[0].values[place(row * at.key + i)] * in[1].values[place(key * at.key + i)];
          sum *= scale;
          if (at.slopes) sum -= slopes[place(h)] * static_cast<double>(own - j);
          for (std::int64_t u = j + 1; u <= own && at.decay; ++u) sum += in[3].values[place((b * keys + u) * query_heads + h)];
          scores[place(j)] = sum;
        }
        const double top = *std::max_element(scores.begin(), scores.end());
        double total = 0.0;
        for (double& score : scores) total += score = std::exp(score - top);
        for (std::int64_t j = 0; j < keys; ++j)
          for (std::int64_t i = 0; i < at.value; ++i)
            o.values[place(row * at.value + i)] +=
                scores[place(j)] / total * in[2].values[place(((b * keys + j) * at.heads + h / at.group) * at.value + i)];
      }
  return {o};
}

OpCase make(const std::string& name, const Options& at, double scale) {
  const std::int64_t query_heads = at.heads * at.group, keys = at.past + at.time;
  OpCase op;
  op.name = "attention_" + name;
  op.inputs = {{"q", {at.batch, at.time, query_heads, at.key}},
               {"k", {at.batch, keys, at.heads, at.key}},
               {"v", {at.batch, keys, at.heads, at.value}}};
  if (at.decay) op.inputs.push_back({"log_decay", {at.batch, keys, query_heads}, at.strongest, 0.0});
  if (!at.starts.empty()) {
    op.inputs.push_back({"starts", {at.batch, at.time}, 0.0, 1.0, 1});
    op.prepare = [=](std::vector<Array>& in) {
      for (std::int64_t b = 0; b < at.batch; ++b)
        for (std::int64_t t = 0; t < at.time; ++t)
          in.back().values[place(b * at.time + t)] = static_cast<double>(start_of(at, b, t));
    };
  }
  op.run = [=](Tape& tape, std::span<const Tensor> in) {
    AttentionOptions options{scale, at.causal, at.window, {}};
    if (at.slopes) {
      std::vector<double> slopes = slopes_of(at);
      options.slopes = tape.empty({at.heads * at.group}, Dtype::f64);
      put(tape.stream().device, Tensor::borrow(slopes.data(), Dtype::f64, options.slopes.shape()), options.slopes);
    }
    return std::vector{attention(tape, in[0], in[1], in[2], options, at.decay ? in[3] : Tensor(),
                                 at.starts.empty() ? Tensor() : in.back())};
  };
  op.reference = [=](std::span<const Array> in) { return plain(in, at, scale); };
  return op;
}

/// With scores of about the size of one, so that weights differ.
OpCase make(const std::string& name, const Options& at) {
  return make(name, at, 3.0 / std::sqrt(static_cast<double>(at.key)));
}

std::vector<std::int64_t> documents(std::int64_t time, std::int64_t before, std::initializer_list<std::int64_t> begins) {
  std::vector<std::int64_t> starts(place(time), before);
  for (const std::int64_t begin : begins) std::fill(starts.begin() + begin, starts.end(), begin);
  return starts;
}

}  // namespace

std::vector<OpCase> attention_cases() {
  std::vector<OpCase> cases;
  for (const std::int64_t time : {0, 1, 2, 6, 7, 15, 16, 17, 63, 64, 65, 129})
    cases.push_back(make("time_" + std::to_string(time), {.time = time, .key = 8, .value = 8}));
  for (const std::int64_t width : {1, 4, 8, 16, 24, 80, 128, 256, 257, 512})
    cases.push_back(make("width_" + std::to_string(width), {.time = width > 100 ? 5 : 18, .key = width, .value = width}));
  cases.push_back(make("wide_keys", {.batch = 2, .time = 21, .heads = 2, .key = 33, .value = 7}));
  cases.push_back(make("wide_values", {.batch = 2, .time = 21, .heads = 2, .key = 5, .value = 47}));
  cases.push_back(make("no_batch", {.batch = 0, .time = 5, .key = 4, .value = 4}));
  cases.push_back(make("large_scores", {.time = 70, .key = 8, .value = 8}, 200.0));
  for (const std::int64_t window : {1, 2, 5, 33, 64, 65, 200})
    cases.push_back(make("window_" + std::to_string(window),
                         {.batch = 2, .time = 70, .heads = 2, .key = 4, .value = 4, .window = window}));
  cases.push_back(make("grouped", {.batch = 2, .time = 35, .heads = 2, .group = 3, .key = 12, .value = 10}));
  cases.push_back(make("grouped_by_eights", {.batch = 2, .time = 35, .heads = 2, .group = 3, .key = 24, .value = 16}));
  cases.push_back(make("one_shared_head", {.batch = 2, .time = 35, .group = 4, .key = 8, .value = 8, .window = 9}));
  cases.push_back(make("not_causal", {.batch = 2, .time = 67, .heads = 2, .key = 8, .value = 8, .causal = false}));
  cases.push_back(make("cross", {.time = 3, .past = 70, .heads = 2, .key = 8, .value = 8, .causal = false}));
  for (const std::int64_t past : {1, 63, 64, 65, 130})
    cases.push_back(make("past_" + std::to_string(past), {.batch = 2, .time = 7, .past = past, .heads = 2, .key = 8, .value = 8}));
  cases.push_back(make("one_token", {.batch = 2, .time = 1, .past = 70, .group = 2, .key = 16, .value = 16, .window = 66}));
  cases.push_back(make("past_of_many", {.time = 66, .past = 31, .heads = 2, .key = 8, .value = 8, .window = 40, .slopes = true}));
  cases.push_back(make("slopes", {.batch = 2, .time = 70, .heads = 3, .key = 8, .value = 8, .slopes = true}));
  cases.push_back(make("decay", {.batch = 2, .time = 65, .heads = 2, .key = 8, .value = 8, .decay = true}));
  cases.push_back(make("decay_past", {.time = 20, .past = 50, .group = 2, .key = 8, .value = 8, .decay = true}));
  cases.push_back(make("decay_strong", {.time = 70, .heads = 2, .key = 8, .value = 8, .decay = true, .strongest = -40.0}));
  cases.push_back(make("decay_slopes_window", {.batch = 2,
                                               .time = 66,
                                               .heads = 1,
                                               .group = 2,
                                               .key = 8,
                                               .value = 8,
                                               .window = 33,
                                               .slopes = true,
                                               .decay = true}));
  cases.push_back(make("packed", {.batch = 3, .time = 70, .heads = 2, .key = 8, .value = 8,
                                  .starts = documents(70, 0, {1, 7, 16, 30, 66})}));
  cases.push_back(make("packed_past", {.batch = 2, .time = 30, .past = 80, .heads = 2, .key = 8, .value = 8,
                                       .starts = documents(30, -70, {9, 20})}));
  cases.push_back(make("packed_window_decay", {.batch = 2, .time = 66, .past = 9, .group = 2, .key = 8, .value = 8,
                                               .window = 11, .slopes = true, .decay = true,
                                               .starts = documents(66, -4, {5, 40})}));
  return cases;
}

}  // namespace phasor::ops
