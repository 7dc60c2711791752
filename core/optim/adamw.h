#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/nn/parameters.h"
#include "core/spec/fields.h"

namespace phasor {

/// AdamW with decoupled weight decay (Loshchilov and Hutter 2019) and clipping by the global norm, in the order clip,
/// decay, moments, update (layers.md 13).
struct AdamWOptions {
  std::vector<double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.0;
  std::string decay = "tagged";  // tagged: without the exempt parameters; all: every parameter
  std::optional<double> clip;    // largest global gradient norm; not set = no clipping
  void fields(FieldList&);
};

struct StepReport {
  double grad_norm = 0.0;  // before clipping, over all trained parameters
  double clip_factor = 1.0;
};

class AdamW {
 public:
  /// Moments are kept in the precision of the parameters.
  AdamW(const AdamWOptions&, ParameterStore&);

  /// One update with the flat gradient (laid out as the parameters are). `gradient` is left as it was.
  StepReport step(const Tensor& gradient, double lr);

  std::int64_t updates() const { return updates_; }
  const Tensor& first_moment() const { return first_; }
  const Tensor& second_moment() const { return second_; }

 private:
  AdamWOptions options_;
  ParameterStore& parameters_;
  Arena arena_;
  Tensor first_, second_;
  std::int64_t updates_ = 0;
  double power1_ = 1.0, power2_ = 1.0;  // betas to the power of the updates
};

}  // namespace phasor
