#include "experiments/cost.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <vector>

#include "core/graph/accumulate.h"
#include "core/ops/cross_entropy/cross_entropy.h"
#include "core/ops/gemm.h"
#include "experiments/data.h"
#include "experiments/order.h"
#include "experiments/trainer.h"

namespace phasor {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// One micro-batch, forward and backward, without a number being computed.
struct DryPass {
  Profile both;
  double forward_flops = 0.0;
  std::int64_t bytes = 0;  // of the arena afterwards: the most that was in use, block by block
};

DryPass walk(const Model& model, const Task& task, const Slice& slice, std::int64_t rows, const Tensor& gradients) {
  Arena arena;
  DryPass pass;
  {
    Tape tape(arena, {gradients.dtype(), &pass.both, true}, true, gradients);
    const auto zeros = [&](Shape shape) {
      const Tensor out = tape.empty(shape, Dtype::i32);
      zero(out);  // no launch: a batch is written by the task
      return out;
    };
    const std::int64_t tokens = task.tokens(slice), capacity = rows * task.max_targets(slice);
    const std::vector<Tensor> ids(static_cast<std::size_t>(task.streams()), zeros({rows, tokens}));
    const Tensor starts = task.packs() ? zeros({rows, tokens}) : Tensor();
    const Tensor logits = model.logits(tape, ids, {0, true, starts, DropoutKey{}}, zeros({capacity}));
    const Tensor losses = ops::cross_entropy(tape, logits, zeros({capacity}));
    pass.forward_flops = pass.both.total().flops;
    tape.backward(std::array{std::pair{losses, tape.empty(losses.shape())}});
  }
  pass.bytes = arena.system_bytes();
  return pass;
}

/// How many micro-batches of an update have how many rows.
std::map<std::int64_t, std::int64_t> micro_batches(const TrainOptions& train) {
  const std::int64_t lanes = train.lanes.value(), micro_batch = train.micro_batch.value();
  std::map<std::int64_t, std::int64_t> counts;
  for (std::int64_t i = 0; i < lanes; ++i) {
    const std::int64_t rows = lane_begin(train.batch, lanes, i + 1) - lane_begin(train.batch, lanes, i);
    if (rows >= micro_batch) counts[micro_batch] += rows / micro_batch;
    if (rows % micro_batch > 0) ++counts[rows % micro_batch];
  }
  return counts;
}

/// What an update launches beside the passes of its micro-batches.
Profile around_passes(const TrainOptions& train, const Task& task, const Slice& slice, const Tensor& gradients,
                      Optimizer& optimizer) {
  Profile profile;
  const Stream stream{gradients.dtype(), &profile, true};
  const std::int64_t lanes = train.lanes.value();
  Rows rows;
  for (std::int64_t i = 0; i < lanes; ++i) {
    rows.resize(task, slice, lane_begin(train.batch, lanes, i + 1) - lane_begin(train.batch, lanes, i));
    const KernelTimer batch(stream, "batch", {0.0, rows.bytes()});
    zero(stream, gradients);
  }
  const std::vector<Tensor> of_lanes(static_cast<std::size_t>(lanes), gradients);
  optimizer.step(of_lanes, 0.0, [&](std::int64_t count, FunctionRef<void(std::int64_t, const Stream&)> work) {
    for (std::int64_t i = 0; i < count; ++i) work(i, stream);
  });
  return profile;
}

}  // namespace

Cost count_cost(const ExperimentSpec& spec) {
  const auto task = spec.make_task();
  const Dtype dtype = spec.train.precision == "f64" ? Dtype::f64 : Dtype::f32;
  ParameterStore parameters;
  const Model model(spec.model, DataShape(*task), spec.mixer(), parameters);
  parameters.allocate(dtype);
  const std::vector<Slice> slices = task->slices(Split::train);
  const Slice& largest = *std::max_element(slices.begin(), slices.end(), [&](const Slice& a, const Slice& b) {
    return task->tokens(a) < task->tokens(b);
  });
  const std::int64_t lanes = spec.train.lanes.value(), workers = std::min(lanes, spec.run.threads);
  Arena memory;
  const Tensor gradients(memory, dtype, {parameters.flat_size()});
  const auto optimizer = spec.optimizer.make(parameters, true);
  if (spec.train.storage == "bf16") optimizer->keep_in_bf16();

  Cost cost;
  cost.step = around_passes(spec.train, *task, largest, gradients, *optimizer);
  for (const auto& [rows, times] : micro_batches(spec.train)) {
    const DryPass pass = walk(model, *task, largest, rows, gradients);
    cost.step.merge(pass.both, times);
    cost.forward_flops += static_cast<double>(times) * pass.forward_flops;
    cost.activation_bytes = std::max(cost.activation_bytes, pass.bytes * workers);
  }
  cost.step_flops = cost.step.total().flops;
  cost.step_tokens = spec.train.batch * task->tokens(largest);
  for (const Slice& slice : task->slices(Split::valid)) cost.valid_tokens += slice.rows * task->tokens(slice);
  for (const Slice& slice : task->slices(Split::test)) cost.test_tokens += slice.rows * task->tokens(slice);
  const auto flat_bytes = parameters.flat_size() * static_cast<std::int64_t>(size_of(dtype));
  cost.parameter_bytes = flat_bytes;
  cost.gradient_bytes = flat_bytes * lanes;
  for (const auto& [name, tensor] : optimizer->memory()) cost.optimizer_bytes += bytes_of(tensor);
  const std::int64_t per_token = task->streams() + 1 + (task->packs() ? 1 : 0);  // ids, a target, where the document starts
  cost.least_step_bytes =
      2 * (2 * flat_bytes + cost.optimizer_bytes) + cost.step_tokens * per_token * static_cast<std::int64_t>(size_of(Dtype::i32));
  return cost;
}

namespace {

/// Of one thread, in operations per second.
double matrix_speed() {
  constexpr std::int64_t n = 512;
  std::vector<float> memory(3 * n * n, 0.5f);
  use_one_thread_for_gemm();
  double best = 0.0;
  for (int i = 0; i < 4; ++i) {
    const auto start = Clock::now();
    gemm(false, false, n, n, n, 1.0f, memory.data(), n, memory.data() + n * n, n, 0.0f, memory.data() + 2 * n * n, n);
    best = std::max(best, 2.0 * n * n * n / seconds_since(start));
  }
  return best;
}

/// Median of the steps that fit into about a second; the first, which takes its memory, does not count.
double measured_step(const ExperimentSpec& spec) {
  Trainer trainer(spec);
  trainer.step();
  std::vector<double> seconds;
  const auto start = Clock::now();
  while (seconds.size() < 3 || (seconds_since(start) < 1.0 && seconds.size() < 200)) {
    const auto begin = Clock::now();
    trainer.step();
    seconds.push_back(seconds_since(begin));
  }
  std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2), seconds.end());
  return seconds[seconds.size() / 2];
}

}  // namespace

TimeEstimate estimate_time(const ExperimentSpec& spec, const Cost& cost) {
  TimeEstimate estimate;
  const double guess = cost.step_flops / (0.5 * matrix_speed() * static_cast<double>(spec.run.threads));
  estimate.measured = !spec.make_task()->missing() && guess < 0.4 && cost.bytes() < (std::int64_t{2} << 30);
  estimate.step_seconds = estimate.measured ? measured_step(spec) : guess;
  const double per_token = estimate.step_seconds * cost.forward_flops / cost.step_flops / static_cast<double>(cost.step_tokens);
  const double evaluations = spec.train.eval_every > 0 ? static_cast<double>(spec.train.steps / spec.train.eval_every) : 0.0;
  estimate.seconds = estimate.step_seconds * static_cast<double>(spec.train.steps) +
                     per_token * (static_cast<double>(cost.test_tokens) + (1.0 + evaluations) * static_cast<double>(cost.valid_tokens));
  return estimate;
}

}  // namespace phasor
