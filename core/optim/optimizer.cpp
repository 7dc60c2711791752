#include "core/optim/optimizer.h"

#include <algorithm>

#include "core/graph/accumulate.h"
#include "core/graph/transfer.h"
#include "core/optim/kernel.h"

namespace phasor {

void DecayOptions::fields(FieldList& f, const std::string& weight_decay_help) {
  f.number("weight_decay", weight_decay, weight_decay_help, Range::at_least(0.0));
  f.choice("decay", decay, {"tagged", "all"}, "tagged spares A_log, D, scalars, biases and norm weights");
  f.number("clip", clip, "largest global gradient norm; not set: no clipping", Range::above(0.0));
}

namespace {
/// Elements first .. first+count-1 of a flat tensor.
void round_part(const Stream& stream, const Tensor& flat, std::int64_t first, std::int64_t count) {
  launch(stream, round_bf16, {flat.view(), first, count}, {0.0, 2 * count * static_cast<std::int64_t>(size_of(flat.dtype()))});
}
}  // namespace

Tensor Optimizer::flat_zeros() {
  const Tensor flat(arena_, parameters_.flat().dtype(), {parameters_.flat_size()});
  zero(stream(), flat);
  return flat;
}

void Optimizer::cut() {
  // In elements. A device has no such caches, and every launch costs it some microseconds.
  const std::int64_t longest = parameters_.device() != nullptr ? 1 << 24 : 1 << 14;
  const auto& entries = parameters_.entries();
  const auto decays = [&](const ParameterEntry& entry) { return options_.decay == "all" || entry.decays; };
  for (std::size_t at = 0; at < entries.size();) {
    std::size_t end = at;
    while (end < entries.size() && !entries[end].frozen && decays(entries[end]) == decays(entries[at])) ++end;
    if (end > at) {
      const std::int64_t last = entries[end - 1].offset + entries[end - 1].count();
      for (std::int64_t first = entries[at].offset; first < last; first += longest)
        pieces_.push_back({first, std::min(longest, last - first), decays(entries[at])});
    }
    at = std::max(end, at + 1);
  }
  squares_ = Tensor(arena_, Dtype::f64, {static_cast<std::int64_t>(pieces_.size())});
  numbers_ = Tensor(arena_, Dtype::f64, {static_cast<std::int64_t>(sizeof(UpdateNumbers) / sizeof(double))});
}

void Optimizer::add_up(const Stream& stream, std::span<const Tensor> gradients, std::size_t piece) {
  const auto [first, count, decays] = pieces_[piece];
  const Tensor sum = gradients[0].columns(first, count);
  for (const Tensor& gradient : gradients.subspan(1)) copy(stream, gradient.columns(first, count), sum, true);
  launch(stream, sum_squares, {sum.view(), count, squares_.as<double>() + piece}, {0.0, bytes_of(sum)});
}

void Optimizer::prepare(double lr) {
  if (pieces_.empty()) cut();
  count_update();
  UpdateNumbers now = numbers(lr);
  if (!dry_) put(parameters_.device(), Tensor::borrow(&now, Dtype::f64, numbers_.shape()), numbers_);
}

void Optimizer::launch_update(std::span<const Tensor> gradients, Parallel parallel) {
  for (const Tensor& gradient : gradients)
    PHASOR_CHECK(gradient.size() == parameters_.flat_size(), "one gradient per parameter");
  zero(stream(), squares_);
  const auto pieces = static_cast<std::int64_t>(pieces_.size());
  parallel(pieces, [&](std::int64_t i, const Stream& stream) { add_up(stream, gradients, static_cast<std::size_t>(i)); });
  launch(stream(), clip_factor, {squares_.as<double>(), pieces, options_.clip.value_or(0.0), current()}, {0.0, bytes_of(squares_)});
  parallel(pieces, [&](std::int64_t i, const Stream& stream) {
    const auto& [first, count, decays] = pieces_[static_cast<std::size_t>(i)];
    update(stream, gradients[0], first, count, decays);
    for (const Tensor& flat : rounded_) round_part(stream, flat, first, count);
  });
}

StepReport Optimizer::step(std::span<const Tensor> gradients, double lr, Parallel parallel) {
  prepare(lr);
  launch_update(gradients, parallel);
  if (dry_) return {};
  const Tensor found = fetched(parameters_.device(), report(), read_back_);
  return {found.as<double>()[0], found.as<double>()[1]};
}

StepReport Optimizer::step(const Tensor& gradient, double lr) {
  const Stream stream = this->stream();
  return step(std::span(&gradient, 1), lr, [&](std::int64_t count, FunctionRef<void(std::int64_t, const Stream&)> work) {
    for (std::int64_t i = 0; i < count; ++i) work(i, stream);
  });
}

void Optimizer::keep_in_bf16() {
  PHASOR_CHECK(rounded_.empty(), "bfloat16 is asked for once");
  rounded_.push_back(parameters_.flat());
  for (const auto& [name, tensor] : memory()) rounded_.push_back(tensor);
  round_part(stream(), parameters_.flat(), 0, parameters_.flat_size());
}

void Optimizer::resume(std::int64_t updates) {
  PHASOR_CHECK(updates_ == 0, "an optimiser resumes before its first update");
  while (updates_ < updates) count_update();
}

}  // namespace phasor
