#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/function_ref.h"
#include "core/graph/tape.h"
#include "core/nn/model.h"
#include "core/optim/optimizer.h"
#include "core/optim/schedule.h"
#include "experiments/data.h"
#include "experiments/lane.h"
#include "experiments/order.h"
#include "experiments/spec.h"
#include "experiments/thread_pool.h"

namespace phasor {

/// What one update did.
struct StepResult {
  std::int64_t step = 0;       // number of the update, from 1
  double loss = 0.0;           // mean over the supervised tokens of the batch, before the update
  double lr = 0.0;
  double grad_norm = 0.0;
  bool clipped = false;
  std::int64_t targets = 0;    // supervised tokens; with none there is no update
};

/// Means over one slice.
struct SliceResult {
  double loss = 0.0, token_accuracy = 0.0, sequence_accuracy = 0.0;
  double class_accuracy = 0.0;  // mean over the classes that occur as targets of the accuracy within each
  std::int64_t tokens = 0, rows = 0, classes = 0;  // scored
  struct Range {
    std::int64_t end = 0;  // last position
    double loss = 0.0;
    std::int64_t tokens = 0;
  };
  std::vector<Range> positions;  // Task::position_ends, those with scored tokens
};

/// The same when the model continues by itself after the prompt: a wrong token is read as the next input.
struct FreeResult {
  double token_accuracy = 0.0, sequence_accuracy = 0.0;
  std::int64_t tokens = 0, rows = 0;
};

class DeviceSteps;

/// What train.attention asks of a device (null: the processor), "cuDNN 9.19.0"; empty for our own kernels. UserError where it cannot
/// be had.
std::string attention_library_of(const ExperimentSpec& spec, const Device* device);

/// A model in training. A batch is dealt to a fixed number of lanes; a lane works through its rows in micro-batches, in
/// order, into its own gradient buffer; the buffers are added in the order of the lanes. Threads take lanes, so the bits
/// do not depend on them; what a pass computes lies in the memory of the thread, which stays in its caches from lane to lane. Means are over all supervised tokens of the batch, exactly.
class Trainer {
 public:
  /// `device`: where it trains, one thread and one queue; null: the processor, on spec.run.threads.
  explicit Trainer(const ExperimentSpec& spec, Device* device = nullptr);
  ~Trainer();

  StepResult step();  // the next update, and what it did
  /// The next update. On a device it goes on after the return, and results wait there until they are taken.
  void start_step();
  /// Of the updates whose results nobody has taken, in order; waits for a device.
  std::vector<StepResult> take_results();
  std::int64_t steps_done() const { return steps_done_; }  // that were started
  SliceResult evaluate(const EvaluationData& data);
  /// Greedy decoding, token by token with carried state. Only for slices with a prompt (Task::prompt).
  FreeResult decode(const EvaluationData& data);
  /// Goes on after so many steps; parameters and the optimiser's memory have been restored through the accessors.
  void resume(std::int64_t steps, std::int64_t updates);

  const Task& task() const { return *task_; }
  /// Positions of all batches so far.
  std::int64_t tokens_seen() const { return tokens_seen_; }
  const ParameterStore& parameters() const { return parameters_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  Device* device() const { return device_; }
  std::int64_t micro_batch() const { return micro_batch_; }
  ThreadPool& pool() { return pool_; }
  /// Collects time, operations and bytes per kernel from now on (phasor bench), or stops.
  void profile(bool on);
  Profile collected() const;  // of all threads
  /// Blocks taken from the system: constant once every thread has had a lane.
  std::int64_t system_blocks() const;

 private:
  struct Worker;
  struct Part;
  Lane& lane(std::int64_t i) { return lanes_[static_cast<std::size_t>(i)]; }
  Worker& worker(std::int64_t i) { return *workers_[static_cast<std::size_t>(i)]; }
  BatchSource source_of(std::int64_t step) const;
  void draw_batch(Lane& lane, Worker& worker, std::int64_t step);
  void forward_backward(Lane& lane, Worker& worker, const Slice& slice, std::int64_t step, std::int64_t targets);
  /// Memory that the host fills: the tape's, or, beside a device, that of the processor.
  Arena& host(Tape& tape) const { return device_ != nullptr ? staging_ : tape.arena(); }
  /// The same where kernels can read it.
  Tensor loaded(Tape& tape, const Tensor& from) const;
  MicroBatch loaded(Tape& tape, const MicroBatch& from) const;
  MicroBatch gather(Tape& tape, const Rows& rows, std::int64_t first, std::int64_t count, std::int64_t capacity) const;
  /// Sums over all micro-batches of evaluation rows.
  Part over_parts(const EvaluationData&, FunctionRef<Part(Tape&, std::int64_t first, std::int64_t count)> work);
  Part score(Tape&, const EvaluationData&, std::int64_t first, std::int64_t count) const;
  Part decode_rows(Tape&, const EvaluationData&, std::int64_t first, std::int64_t count) const;
  std::vector<std::int32_t> predict(Tape&, const Tensor& ids, std::int64_t offset, std::vector<State>&) const;
  StepReport update(double lr);
  /// One update of the processor, and the start of one of the device: with the batch that the lanes hold; draws the next one.
  void compute(const Slice& slice, std::int64_t step, StepResult& result);
  void compute_on_device(std::int64_t slice, std::int64_t step, const StepResult& result);
  void settle();

  const ExperimentSpec& spec_;
  Device* device_;
  mutable Arena staging_;  // of the processor; used beside a device only, by its one thread
  std::unique_ptr<Task> task_;
  std::vector<Slice> train_slices_;
  std::int64_t micro_batch_;
  ParameterStore parameters_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Optimizer> optimizer_;
  Schedule schedule_;
  ThreadPool pool_;
  Arena gradient_memory_;
  std::vector<Lane> lanes_;
  std::vector<std::unique_ptr<Worker>> workers_;  // of the threads of the pool
  std::vector<Tensor> gradients_;   // of the lanes
  std::unique_ptr<DeviceSteps> device_steps_;  // null on the processor
  std::vector<StepResult> results_;            // not taken
  std::size_t settled_ = 0;                    // of them complete; on a device
  std::int64_t drawn_step_ = -1;    // whose batch the lanes hold
  std::int64_t steps_done_ = 0, tokens_seen_ = 0;
};

}  // namespace phasor
