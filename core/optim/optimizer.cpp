#include "core/optim/optimizer.h"

#include <algorithm>
#include <cmath>

#include "core/graph/accumulate.h"
#include "core/optim/kernel.h"

namespace phasor {

void DecayOptions::fields(FieldList& f, const std::string& weight_decay_help) {
  f.number("weight_decay", weight_decay, weight_decay_help, Range::at_least(0.0));
  f.choice("decay", decay, {"tagged", "all"}, "tagged spares A_log, D, scalars, biases and norm weights");
  f.number("clip", clip, "largest global gradient norm; not set: no clipping", Range::above(0.0));
}

Tensor Optimizer::flat_zeros() {
  const Tensor flat(arena_, parameters_.flat().dtype(), {parameters_.flat_size()});
  zero(flat);
  return flat;
}

double Optimizer::norm_of(const Stream& stream, const Tensor& gradient) const {
  double square = 0.0;
  for (const ParameterEntry& entry : parameters_.entries()) {
    if (entry.frozen) continue;
    const auto bytes = static_cast<std::size_t>(entry.offset) * size_of(gradient.dtype());
    const View values{static_cast<std::byte*>(gradient.data()) + bytes, 0};
    launch(stream, sum_squares, {values, entry.count(), &square});
  }
  return std::sqrt(square);
}

StepReport Optimizer::step(const Tensor& gradient, double lr) {
  PHASOR_CHECK(gradient.size() == parameters_.flat_size(), "one gradient per parameter");
  const Stream stream{gradient.dtype(), nullptr};
  StepReport report;
  report.grad_norm = norm_of(stream, gradient);
  if (options_.clip) report.clip_factor = std::min(1.0, *options_.clip / (report.grad_norm + 1e-6));

  count_update();
  begin(lr);
  const auto& entries = parameters_.entries();
  const auto decays = [&](const ParameterEntry& entry) { return options_.decay == "all" || entry.decays; };
  for (std::size_t at = 0; at < entries.size();) {
    std::size_t end = at;
    while (end < entries.size() && !entries[end].frozen && decays(entries[end]) == decays(entries[at])) ++end;
    if (end > at) {
      const std::int64_t first = entries[at].offset;
      const std::int64_t count = entries[end - 1].offset + entries[end - 1].count() - first;
      update(stream, gradient, first, count, report.clip_factor, decays(entries[at]));
    }
    at = std::max(end, at + 1);
  }
  return report;
}

void Optimizer::resume(std::int64_t updates) {
  PHASOR_CHECK(updates_ == 0, "an optimiser resumes before its first update");
  while (updates_ < updates) count_update();
}

}  // namespace phasor
