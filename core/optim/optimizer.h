#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/function_ref.h"
#include "core/graph/launch.h"
#include "core/nn/parameters.h"
#include "core/spec/fields.h"

namespace phasor {

struct StepReport {
  double grad_norm = 0.0;  // before clipping, over all trained parameters
  double clip_factor = 1.0;
};

/// What every optimiser does before its own update: which parameters decay, and clipping by the global norm
/// (layers.md 13: factor min(1, clip / (norm + 1e-6))).
struct DecayOptions {
  double weight_decay = 0.0;
  std::string decay = "tagged";  // tagged: without the exempt parameters; all: every parameter
  std::optional<double> clip;    // largest global gradient norm; not set = no clipping
  void fields(FieldList&, const std::string& weight_decay_help);
};

struct UpdateNumbers;

/// Updates the parameters of a store in place, where they lie: streams and gradients are of the same device. Its memory is a
/// few tensors of the size of the parameters and the number of updates: what a checkpoint holds.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Runs work(i, stream) for all 0 <= i < count, in any order and on any threads.
  using Parallel = FunctionRef<void(std::int64_t count, FunctionRef<void(std::int64_t, const Stream&)> work)>;

  /// One update with the sum of flat gradients (each laid out as the parameters are), which is left in the first of them:
  /// added in their order, element by element. Works piece by piece, so that the bits do not depend on `parallel`.
  StepReport step(std::span<const Tensor> gradients, double lr, Parallel parallel);
  /// The same on the calling thread.
  StepReport step(const Tensor& gradient, double lr);
  /// `step` in three parts, for a device that is not to be waited for. `prepare` counts the update and says what it needs of the
  /// host; `launch_update` only launches, so that it can be captured when one update has been made; `report` is f64 [2], the
  /// norm and the clipping factor of the last update, in the memory of the parameters.
  void prepare(double lr);
  void launch_update(std::span<const Tensor> gradients, Parallel parallel);
  Tensor report() const { return Tensor::borrow(numbers_.data(), Dtype::f64, {2}); }

  /// From now on parameters and memory are rounded to bfloat16 (8 bits of mantissa, to the nearest, ties to even) after
  /// every update, and the parameters, frozen ones too, at once: as a program that stores them so computes, up to the
  /// roundings inside its update. They are still kept, and computed with, in the precision of the parameters.
  void keep_in_bf16();

  std::int64_t updates() const { return updates_; }
  /// Continues after so many updates; the memory must be restored too.
  void resume(std::int64_t updates);
  /// Flat tensors, by name; in the precision of the parameters.
  virtual std::vector<std::pair<std::string, Tensor>> memory() const = 0;

 protected:
  /// `dry`: its memory is asked for and never touched, for updates on dry streams.
  Optimizer(const DecayOptions& options, ParameterStore& parameters, bool dry)
      : options_(options), parameters_(parameters), dry_(dry), arena_(parameters.device()) {}

  /// What the kernels of update number `updates()` need to know at this rate.
  virtual UpdateNumbers numbers(double lr) const = 0;
  /// Parameters first .. first+count-1 of the flat buffer: neighbours that are trained and that decay alike.
  virtual void update(const Stream&, const Tensor& gradient, std::int64_t first, std::int64_t count, bool decays) = 0;
  virtual void count_update() { ++updates_; }
  Tensor flat_zeros();
  UpdateNumbers* current() const { return static_cast<UpdateNumbers*>(numbers_.data()); }
  /// Of its own launches, outside of what a caller spreads over threads.
  Stream stream() const { return {parameters_.flat().dtype(), nullptr, dry_, parameters_.device()}; }

  DecayOptions options_;
  ParameterStore& parameters_;
  bool dry_;
  std::int64_t updates_ = 0;

 private:
  /// Neighbours in the flat buffer that are trained and that decay alike, a few tens of kilobytes: what stays in a cache
  /// between the sum over gradients and the sum of its squares.
  struct Piece {
    std::int64_t first, count;
    bool decays;
  };
  void cut();
  void add_up(const Stream&, std::span<const Tensor> gradients, std::size_t piece);

  Arena arena_, read_back_;      // the second one of the processor
  std::vector<Piece> pieces_;    // cut before the first update: parameters are declared by then
  Tensor squares_;               // f64 [pieces], of the summed gradient
  Tensor numbers_;               // f64, UpdateNumbers
  std::vector<Tensor> rounded_;  // flat tensors that are kept in bfloat16: none, or all
};

}  // namespace phasor
