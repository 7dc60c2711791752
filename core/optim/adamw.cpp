#include "core/optim/adamw.h"

#include <algorithm>
#include <cmath>

#include "core/graph/accumulate.h"
#include "core/optim/kernel.h"

namespace phasor {

void AdamWOptions::fields(FieldList& f) {
  f.numbers("betas", betas, "decay of the two moments", {0.0, 1.0, false, true});
  f.number("eps", eps, "added to the root of the second moment", Range::above(0.0));
  f.number("weight_decay", weight_decay, "decoupled: p <- p (1 - lr * weight_decay)", Range::at_least(0.0));
  f.choice("decay", decay, {"tagged", "all"}, "tagged spares A_log, D, scalars, biases and norm weights");
  f.number("clip", clip, "largest global gradient norm; not set: no clipping", Range::above(0.0));
}

AdamW::AdamW(const AdamWOptions& options, ParameterStore& parameters) : options_(options), parameters_(parameters) {
  PHASOR_CHECK(options.betas.size() == 2, "AdamW has two betas");
  first_ = Tensor(arena_, parameters.flat().dtype(), {parameters.flat_size()});
  second_ = Tensor(arena_, parameters.flat().dtype(), {parameters.flat_size()});
  zero(first_);
  zero(second_);
}

StepReport AdamW::step(const Tensor& gradient, double lr) {
  PHASOR_CHECK(gradient.size() == parameters_.flat_size(), "one gradient per parameter");
  const Stream stream{gradient.dtype(), nullptr};
  const auto& entries = parameters_.entries();
  const auto trained_until = [&](std::size_t from, bool decays) {
    std::size_t to = from;
    while (to < entries.size() && !entries[to].frozen && (options_.decay == "all" || entries[to].decays) == decays) ++to;
    return to;
  };

  double square = 0.0;
  for (const ParameterEntry& entry : entries) {
    if (entry.frozen) continue;
    const View values{static_cast<std::byte*>(gradient.data()) + static_cast<std::size_t>(entry.offset) * size_of(gradient.dtype()), 0};
    launch(stream, sum_squares, {values, entry.count(), &square});
  }
  StepReport report;
  report.grad_norm = std::sqrt(square);
  if (options_.clip) report.clip_factor = std::min(1.0, *options_.clip / (report.grad_norm + 1e-6));

  ++updates_;
  power1_ *= options_.betas[0];
  power2_ *= options_.betas[1];
  AdamWUpdate args{parameters_.flat().view(), gradient.view(), first_.view(), second_.view(), 0, 0,
                   report.clip_factor, 1.0, options_.betas[0], options_.betas[1], options_.eps,
                   lr / (1.0 - power1_), 1.0 / std::sqrt(1.0 - power2_)};
  for (std::size_t at = 0; at < entries.size();) {
    if (entries[at].frozen) {
      ++at;
      continue;
    }
    const bool decays = options_.decay == "all" || entries[at].decays;
    const std::size_t end = trained_until(at, decays);
    args.begin = entries[at].offset;
    args.count = entries[end - 1].offset + entries[end - 1].count() - args.begin;
    args.keep = decays ? 1.0 - lr * options_.weight_decay : 1.0;
    launch(stream, adamw_update, args);
    at = end;
  }
  return report;
}

}  // namespace phasor
