#pragma once

#include "core/optim/optimizer.h"

namespace phasor {

struct SgdOptions {
  double momentum = 0.0;
  bool nesterov = false;
  DecayOptions decay;
  void fields(FieldList&);
};

/// Stochastic gradient descent with momentum, in the order clip, decay, momentum, update:
///     g <- clip g + weight_decay p;  m <- momentum m + g;  p <- p - lr m, with Nesterov p <- p - lr (g + momentum m)
/// The decay is part of the gradient (L2), as is usual for SGD; without momentum that is the decoupled form too.
class Sgd final : public Optimizer {
 public:
  Sgd(const SgdOptions&, ParameterStore&, bool dry = false);
  std::vector<std::pair<std::string, Tensor>> memory() const override;

 private:
  UpdateNumbers numbers(double lr) const override;
  void update(const Stream&, const Tensor& gradient, std::int64_t first, std::int64_t count, bool decays) override;

  SgdOptions sgd_;
  Tensor moment_;  // empty without momentum
};

}  // namespace phasor
