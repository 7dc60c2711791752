#include "experiments/cost.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "core/ops/cross_entropy/cross_entropy.h"
#include "core/ops/gather_rows/gather_rows.h"
#include "core/ops/gemm.h"
#include "experiments/trainer.h"

namespace phasor {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double flops_of(const Profile& profile) {
  double sum = 0.0;
  for (const Profile::Entry& entry : profile.entries()) sum += entry.flops;
  return sum;
}

/// One micro-batch, forward and backward, without a number being computed.
struct DryPass {
  double forward = 0.0, both = 0.0;
  std::int64_t bytes = 0;  // of the arena afterwards: the most that was in use, block by block
};

DryPass walk(const Model& model, const Task& task, const Slice& slice, std::int64_t rows, Dtype dtype, std::int64_t flat_size) {
  Arena arena, gradient_memory;
  Profile profile;
  DryPass pass;
  {
    const Stream stream{dtype, &profile, true};
    Tape tape(arena, stream, true, Tensor(gradient_memory, dtype, {flat_size}));
    const std::int64_t tokens = task.tokens(slice), capacity = rows * task.max_targets(slice);
    const std::vector<Tensor> ids(static_cast<std::size_t>(task.streams()), tape.zeros({rows, tokens}, Dtype::i32));
    const Tensor starts = task.packs() ? tape.zeros({rows, tokens}, Dtype::i32) : Tensor();
    const Tensor hidden = model.hidden(tape, ids, {0, true, starts, DropoutKey{}});
    const Tensor logits = model.head(tape, ops::gather_rows(tape, hidden, tape.zeros({capacity}, Dtype::i32)));
    const Tensor losses = ops::cross_entropy(tape, logits, tape.zeros({capacity}, Dtype::i32));
    pass.forward = flops_of(profile);
    tape.backward(std::array{std::pair{losses, tape.empty(losses.shape())}});
  }
  pass.both = flops_of(profile);
  pass.bytes = arena.system_bytes();
  return pass;
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
  const std::int64_t lanes = spec.train.lanes.value(), micro_batch = spec.train.micro_batch.value();
  const DryPass pass = walk(model, *task, largest, micro_batch, dtype, parameters.flat_size());

  Cost cost;
  const double parts = static_cast<double>(spec.train.batch) / static_cast<double>(micro_batch);
  cost.step_flops = pass.both * parts;
  cost.forward_flops = pass.forward * parts;
  cost.step_tokens = spec.train.batch * task->tokens(largest);
  for (const Slice& slice : task->slices(Split::valid)) cost.valid_tokens += slice.rows * task->tokens(slice);
  for (const Slice& slice : task->slices(Split::test)) cost.test_tokens += slice.rows * task->tokens(slice);
  const auto flat_bytes = parameters.flat_size() * static_cast<std::int64_t>(size_of(dtype));
  cost.parameter_bytes = flat_bytes;
  cost.gradient_bytes = flat_bytes * lanes;
  const bool no_memory = spec.optimizer.name == "sgd" && spec.optimizer.sgd.momentum == 0.0;
  cost.optimizer_bytes = no_memory ? 0 : flat_bytes * (spec.optimizer.name == "sgd" ? 1 : 2);
  cost.activation_bytes = pass.bytes * lanes;
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
  estimate.measured = guess < 0.4 && cost.bytes() < (std::int64_t{2} << 30);
  estimate.step_seconds = estimate.measured ? measured_step(spec) : guess;
  const double per_token = estimate.step_seconds * cost.forward_flops / cost.step_flops / static_cast<double>(cost.step_tokens);
  const double evaluations = spec.train.eval_every > 0 ? static_cast<double>(spec.train.steps / spec.train.eval_every) : 0.0;
  estimate.seconds = estimate.step_seconds * static_cast<double>(spec.train.steps) +
                     per_token * (static_cast<double>(cost.test_tokens) + (1.0 + evaluations) * static_cast<double>(cost.valid_tokens));
  return estimate;
}

}  // namespace phasor
