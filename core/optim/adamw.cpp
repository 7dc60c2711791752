#include "core/optim/adamw.h"

#include <cmath>

#include "core/optim/kernel.h"

namespace phasor {

void AdamWOptions::fields(FieldList& f) {
  f.numbers("betas", betas, "decay of the two moments", {0.0, 1.0, false, true});
  f.number("eps", eps, "added to the root of the second moment", Range::above(0.0));
  decay.fields(f, "decoupled: p <- p (1 - lr * weight_decay)");
}

AdamW::AdamW(const AdamWOptions& options, ParameterStore& parameters, bool dry)
    : Optimizer(options.decay, parameters, dry), adamw_(options), first_(flat_zeros()), second_(flat_zeros()) {
  PHASOR_CHECK(options.betas.size() == 2, "AdamW has two betas");
}

void AdamW::count_update() {
  Optimizer::count_update();
  power1_ *= adamw_.betas[0];
  power2_ *= adamw_.betas[1];
}

UpdateNumbers AdamW::numbers(double lr) const {
  return {0.0, 1.0, 1.0 - lr * options_.weight_decay, lr / (1.0 - power1_), 1.0 / std::sqrt(1.0 - power2_)};
}

void AdamW::update(const Stream& stream, const Tensor& gradient, std::int64_t first, std::int64_t count, bool decays) {
  launch(stream, adamw_update,
         {parameters_.flat().view(), gradient.view(), first_.view(), second_.view(), first, count, current(), decays,
          adamw_.betas[0], adamw_.betas[1], adamw_.eps},
         {0.0, 7 * count * static_cast<std::int64_t>(size_of(gradient.dtype()))});
}

}  // namespace phasor
