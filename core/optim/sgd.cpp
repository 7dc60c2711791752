#include "core/optim/sgd.h"

#include "core/optim/kernel.h"

namespace phasor {

void SgdOptions::fields(FieldList& f) {
  f.number("momentum", momentum, "share of the last step that goes on", {0.0, 1.0, false, true});
  f.boolean("nesterov", nesterov, "look ahead along the momentum");
  decay.fields(f, "added to the gradient: g <- g + weight_decay p");
}

Sgd::Sgd(const SgdOptions& options, ParameterStore& parameters, bool dry)
    : Optimizer(options.decay, parameters, dry), sgd_(options) {
  if (options.momentum > 0.0) moment_ = flat_zeros();
}

std::vector<std::pair<std::string, Tensor>> Sgd::memory() const {
  if (!moment_) return {};
  return {{"moment", moment_}};
}

UpdateNumbers Sgd::numbers(double lr) const { return {0.0, 1.0, 1.0, lr, 0.0}; }

void Sgd::update(const Stream& stream, const Tensor& gradient, std::int64_t first, std::int64_t count, bool decays) {
  launch(stream, sgd_update,
         {parameters_.flat().view(), gradient.view(), moment_.view(), first, count, current(),
          decays ? options_.weight_decay : 0.0, sgd_.momentum, sgd_.nesterov},
         {0.0, (moment_ ? 5 : 3) * count * static_cast<std::int64_t>(size_of(gradient.dtype()))});
}

}  // namespace phasor
