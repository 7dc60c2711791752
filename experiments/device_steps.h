#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/graph/device.h"
#include "core/optim/optimizer.h"
#include "experiments/lane.h"

namespace phasor {

/// The updates of a trainer on a device. Nobody waits for one: what it found out stays on the device until `read`. The batch
/// and what else changes from step to step (the step itself, for dropout, and 1 / targets) are one block of memory, the same
/// at every step, that is copied in before; the rest is launches on fixed addresses. So the second step of a length is
/// captured, and later ones replay it.
class DeviceSteps {
 public:
  /// All of these must outlive it. `memory`: of the device.
  DeviceSteps(Device& device, const Model& model, Optimizer& optimizer, const std::vector<Lane>& lanes, Arena& memory);
  ~DeviceSteps();
  DeviceSteps(const DeviceSteps&) = delete;
  DeviceSteps& operator=(const DeviceSteps&) = delete;

  struct Step {
    std::int64_t slice = 0, step = 0, targets = 0;  // of the training slices; updates before; supervised tokens of the batch
    std::int64_t micro_batch = 1, row_targets = 0;  // rows at a time; most targets of a row
    std::uint64_t seed = 0;
    double lr = 0.0;
    bool capture = true;
  };
  /// Starts the update with the batch that the lanes hold; they may change as soon as it returns.
  void start(Tape& tape, const Step& step);

  struct Result {
    double loss_sum, grad_norm, clip_factor;
  };
  /// Of all updates since the last call, in order. Waits.
  std::vector<Result> read();
  bool full() const { return started_ == most; }  // `read` first
  std::int64_t system_blocks() const { return staging_.system_blocks(); }

 private:
  static constexpr std::int64_t most = 256;  // results that wait
  struct Part;
  struct Program;
  Program& program_of(const Step& step, Dtype dtype);
  void fill(const Program& program, const Step& step);
  void launch(Tape& tape, const Program& program);

  Device& device_;
  const Model& model_;
  Optimizer& optimizer_;
  const std::vector<Lane>& lanes_;
  Arena& memory_;
  Arena staging_;  // of the processor
  std::vector<Tensor> gradients_;
  std::map<std::int64_t, std::unique_ptr<Program>> programs_;  // by slice
  Tensor loss_, results_;  // f64 [1]; f64 [most, 3]
  std::int64_t started_ = 0;
};

}  // namespace phasor
