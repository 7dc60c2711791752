#pragma once

#include "core/optim/optimizer.h"

namespace phasor {

struct AdamWOptions {
  std::vector<double> betas = {0.9, 0.999};
  double eps = 1e-8;
  DecayOptions decay;
  void fields(FieldList&);
};

/// AdamW with decoupled weight decay (Loshchilov and Hutter 2019) and clipping by the global norm, in the order clip,
/// decay, moments, update (layers.md 13). Moments are kept in the precision of the parameters.
class AdamW final : public Optimizer {
 public:
  AdamW(const AdamWOptions&, ParameterStore&, bool dry = false);

  const Tensor& first_moment() const { return first_; }
  const Tensor& second_moment() const { return second_; }
  std::vector<std::pair<std::string, Tensor>> memory() const override {
    return {{"first_moment", first_}, {"second_moment", second_}};
  }

 private:
  UpdateNumbers numbers(double lr) const override;
  void update(const Stream&, const Tensor& gradient, std::int64_t first, std::int64_t count, bool decays) override;
  void count_update() override;

  AdamWOptions adamw_;
  Tensor first_, second_;
  double power1_ = 1.0, power2_ = 1.0;  // betas to the power of the updates
};

}  // namespace phasor
