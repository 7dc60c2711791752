#include "core/graph/tape.h"

#include <algorithm>

#include "core/base/blame.h"
#include "core/graph/accumulate.h"

namespace phasor {

namespace {
constexpr std::size_t page_bytes = 1 << 16;
}

Tape::Tape(Arena& arena, Stream stream, bool recording, Tensor gradients)
    : arena_(arena), stream_(stream), recording_(recording), gradients_(std::move(gradients)) {}

Tape::~Tape() { clear(); }

void Tape::clear() {
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) step->destroy(step->object);
  steps_.clear();
  slots_.clear();
  page_ = used_ = 0;
}

void* Tape::reserve(std::size_t bytes, std::size_t alignment) {
  PHASOR_CHECK(bytes <= page_bytes && alignment <= alignof(std::max_align_t), "a pullback keeps handles, not data");
  used_ = (used_ + alignment - 1) / alignment * alignment;
  if (used_ + bytes > page_bytes) {
    ++page_;
    used_ = 0;
  }
  if (page_ == pages_.size()) pages_.push_back(std::make_unique<std::byte[]>(page_bytes));
  void* place = pages_[page_].get() + used_;
  used_ += bytes;
  return place;
}

std::int64_t Tape::new_slot() {
  slots_.emplace_back();
  return static_cast<std::int64_t>(slots_.size());
}

Tensor Tape::zeros(Shape shape, Dtype dtype) {
  Tensor out = empty(shape, dtype);
  zero(stream_, out);
  return out;
}

Tensor Tape::output(Shape shape, Dtype dtype, std::initializer_list<const Tensor*> inputs) {
  Tensor out = Tensor::spaced(arena_, dtype, shape);
  const bool tracked = recording_ && std::any_of(inputs.begin(), inputs.end(),
                                                 [](const Tensor* t) { return t != nullptr && t->node() != 0; });
  if (tracked) out.set_node(new_slot());
  return out;
}

Tensor Tape::variable(Tensor leaf) {
  leaf.set_node(new_slot());
  return leaf;
}

Tensor Tape::take(const Tensor& output) {
  if (output.node() <= 0) return {};
  Slot& from = slot(output.node());
  if (!from.gradient) return {};
  Tensor gradient = std::exchange(from.gradient, {});
  return gradient.reshape(output.shape());
}

Tensor Tape::take_or_zeros(const Tensor& output) {
  Tensor gradient = take(output);
  return gradient ? gradient : zeros(output.shape(), output.dtype());
}

Tensor Tape::parameter_gradient(const Tensor& parameter) const {
  const std::int64_t offset = -1 - parameter.node();
  PHASOR_CHECK(gradients_ && offset + parameter.size() <= gradients_.size(), "the gradient buffer holds all parameters");
  auto* base = static_cast<std::byte*>(gradients_.data());
  return Tensor::borrow(base + static_cast<std::size_t>(offset) * size_of(gradients_.dtype()), gradients_.dtype(),
                        parameter.shape());
}

void Tape::make_unique(Slot& at) {
  if (at.gradient.unique()) return;
  Tensor own = Tensor::spaced(arena_, at.gradient.dtype(), at.gradient.shape());
  copy(stream_, at.gradient, own);
  at.gradient = std::move(own);
}

Tensor Tape::column_home(const Slot& column, const Tensor& value) {
  Slot& parent = slot(column.parent);
  if (!parent.by_columns) {
    parent.by_columns = true;
    if (!parent.gradient) {
      parent.gradient = Tensor::spaced(arena_, value.dtype(), column.parent_shape);
    } else {
      // The whole has a gradient of its own already: every column adds to it.
      make_unique(parent);
      for (std::int64_t i = 0; i < parent.columns; ++i) slot(parent.first_column + i).filled = true;
    }
  }
  return parent.gradient.columns(column.begin, value.width()).reshape(value.shape());
}

/// Zeros where no column has written.
void Tape::complete_columns(Slot& whole) {
  if (!whole.by_columns) return;
  for (std::int64_t i = 0; i < whole.columns; ++i) {
    Slot& column = slot(whole.first_column + i);
    if (std::exchange(column.filled, true)) continue;
    const std::int64_t end =
        i + 1 < whole.columns ? slot(whole.first_column + i + 1).begin : whole.gradient.width();
    zero(stream_, whole.gradient.columns(column.begin, end - column.begin));
  }
}

Tape::Gradient Tape::gradient(const Tensor& input) {
  if (!wants(input)) return {};
  if (input.node() < 0) return {parameter_gradient(input), true};
  Slot& to = slot(input.node());
  if (to.parent != 0) {
    Tensor home = column_home(to, input);
    return {std::move(home), std::exchange(to.filled, true)};
  }
  complete_columns(to);
  const bool asked = std::exchange(to.handed, running_) == running_;
  if (!to.gradient) {
    to.gradient = Tensor::spaced(arena_, input.dtype(), input.shape());
    return {to.gradient, false};
  }
  PHASOR_CHECK(!asked || to.gradient.unique(), "one pullback asks twice for the gradient of one value");
  make_unique(to);
  return {to.gradient.reshape(input.shape()), true};
}

Tape::Gradient Tape::sum(const Tensor& input) {
  Gradient to = gradient(input);
  if (to.tensor && !std::exchange(to.accumulate, true)) zero(stream_, to.tensor);
  return to;
}

void Tape::add(const Tensor& input, Tensor value) {
  if (!wants(input) || !value) return;
  if (input.node() > 0) {
    Slot& to = slot(input.node());
    if (to.parent == 0 && !to.gradient) {
      to.gradient = value.detached().reshape(input.shape());
      return;
    }
    complete_columns(to);
    if (to.parent == 0 && !to.gradient.unique()) {
      Tensor sum = Tensor::spaced(arena_, input.dtype(), input.shape());
      phasor::add(stream_, to.gradient, value, sum);
      to.gradient = std::move(sum);
      return;
    }
  }
  const Gradient to = gradient(input);
  copy(stream_, value, to.tensor, to.accumulate);
}

Columns Tape::split(const Tensor& whole, std::span<const std::int64_t> widths) {
  Columns parts;
  std::int64_t begin = 0;
  const std::int64_t first = static_cast<std::int64_t>(slots_.size()) + 1;
  for (const std::int64_t width : widths) {
    Tensor part = whole.columns(begin, width);
    if (wants(whole)) {
      part.set_node(new_slot());
      Slot& column = slots_.back();
      column.parent = whole.node();
      column.begin = begin;
      column.parent_shape = whole.shape();
    }
    parts.push_back(std::move(part));
    begin += width;
  }
  PHASOR_CHECK(begin == whole.width(), "split covers every column of " + whole.shape().text());
  if (wants(whole)) {
    PHASOR_CHECK(whole.node() > 0 && slot(whole.node()).columns == 0, "a result of an op, split once");
    slot(whole.node()).first_column = first;
    slot(whole.node()).columns = static_cast<std::int64_t>(widths.size());
    record([node = whole.node()](Tape& t) { t.complete_columns(t.slot(node)); });
  }
  return parts;
}

void Tape::backward(std::span<const std::pair<Tensor, Tensor>> seeds) {
  PHASOR_CHECK(recording_, "backward on a tape that records");
  for (const auto& [value, gradient] : seeds) add(value, gradient);
  const BlameScope scope(nullptr, "");  // what marks on the tape say ends with the pass
  try {
    while (!steps_.empty()) {
      const Step step = steps_.back();
      steps_.pop_back();
      ++running_;
      step.run(step.object, *this);
      step.destroy(step.object);
    }
  } catch (...) {
    rethrow_blamed();
  }
}

Tensor Tape::leaf_gradient(const Tensor& leaf) const {
  PHASOR_CHECK(leaf.node() > 0, "a leaf made by variable()");
  const Tensor& gradient = slots_[static_cast<std::size_t>(leaf.node() - 1)].gradient;
  return gradient ? gradient.reshape(leaf.shape()) : gradient;
}

}  // namespace phasor
