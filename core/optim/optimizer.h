#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

/// Updates the parameters of a store in place. Its memory is a few tensors of the size of the parameters and the number
/// of updates: what a checkpoint holds.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update with the flat gradient (laid out as the parameters are). `gradient` is left as it was.
  StepReport step(const Tensor& gradient, double lr);

  std::int64_t updates() const { return updates_; }
  /// Continues after so many updates; the memory must be restored too.
  void resume(std::int64_t updates);
  /// Flat tensors, by name; in the precision of the parameters.
  virtual std::vector<std::pair<std::string, Tensor>> memory() const = 0;

 protected:
  Optimizer(const DecayOptions& options, ParameterStore& parameters) : options_(options), parameters_(parameters) {}

  /// Begins update number `updates() + 1` at this rate.
  virtual void begin(double lr) = 0;
  /// Parameters first .. first+count-1 of the flat buffer: neighbours that are trained and that decay alike.
  virtual void update(const Stream&, const Tensor& gradient, std::int64_t first, std::int64_t count, double clip, bool decays) = 0;
  virtual void count_update() { ++updates_; }
  Tensor flat_zeros();

  DecayOptions options_;
  ParameterStore& parameters_;
  std::int64_t updates_ = 0;

 private:
  double norm_of(const Stream&, const Tensor& gradient) const;
  Arena arena_;
};

}  // namespace phasor
