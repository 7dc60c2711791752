#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "core/graph/accumulate.h"
#include "core/graph/launch.h"
#include "core/tensor/tensor.h"

namespace phasor {

/// A few tensors: handles side by side, without memory from the system.
class Columns {
 public:
  static constexpr std::size_t most = 12;
  Tensor& operator[](std::size_t i) { return parts_[i]; }
  const Tensor& operator[](std::size_t i) const { return parts_[i]; }
  std::size_t size() const { return count_; }
  operator std::span<const Tensor>() const { return {parts_.data(), count_}; }
  void push_back(Tensor part) {
    PHASOR_CHECK(count_ < most, "at most twelve columns");
    parts_[count_++] = std::move(part);
  }

 private:
  std::array<Tensor, most> parts_;
  std::size_t count_ = 0;
};

/// Reverse-mode differentiation, and the memory of one forward and backward pass of one thread at a time.
///
/// An op makes its output with `output()`, launches its kernel, and, when `wants()` says that an input needs a gradient,
/// `record()`s a pullback: a callable that takes the gradient of the output and adds to those of the inputs. Pullbacks
/// run once, in reverse order, and are destroyed (with the tensors they keep) as they finish. Nothing is allocated
/// from the system after the first pass of a shape.
///
///     Tensor y = tape.output(x.shape(), {&x, &weight});
///     launch(tape.stream(), kernel, args, {flops, moved(x, weight, y)});
///     if (tape.wants(y)) tape.record([x, weight, y = place_of(y)](Tape& t) {
///       Tensor dy = t.take(y);              // empty when nothing downstream used y; its memory is gone (place.h)
///       if (!dy) return;
///       Gradient dx = t.gradient(x);        // .tensor empty when x is constant; otherwise add if .accumulate, else write
///       ...
///     });
class Tape {
 public:
  /// `gradients`: flat buffer that parameters' gradients are added to (laid out as the parameters are); may be empty when
  /// nothing is recorded.
  Tape(Arena& arena, Stream stream, bool recording, Tensor gradients = {});
  /// From now on parameters' gradients go to another such buffer.
  void collect_into(Tensor gradients) { gradients_ = std::move(gradients); }
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  const Stream& stream() const { return stream_; }
  Dtype dtype() const { return stream_.dtype; }
  Arena& arena() { return arena_; }
  bool recording() const { return recording_; }

  /// Scratch or constant: not tracked, not initialised.
  Tensor empty(Shape shape) { return Tensor(arena_, stream_.dtype, shape); }
  Tensor empty(Shape shape, Dtype dtype) { return Tensor(arena_, dtype, shape); }
  Tensor zeros(Shape shape) { return zeros(shape, stream_.dtype); }
  Tensor zeros(Shape shape, Dtype dtype);

  /// Result of an op: tracked when recording and any of the inputs (null pointers are skipped) is tracked.
  Tensor output(Shape shape, std::initializer_list<const Tensor*> inputs) { return output(shape, stream_.dtype, inputs); }
  Tensor output(Shape shape, Dtype dtype, std::initializer_list<const Tensor*> inputs);
  /// Marks a leaf whose gradient is wanted (tests).
  Tensor variable(Tensor leaf);

  /// Needs a gradient.
  bool wants(const Tensor& value) const { return recording_ && value.node() != 0; }

  template <class Pullback>
  void record(Pullback pullback) {
    void* place = reserve(sizeof(Pullback), alignof(Pullback));
    Pullback* object = new (place) Pullback(std::move(pullback));
    steps_.push_back({object, [](void* p, Tape& t) { (*static_cast<Pullback*>(p))(t); },
                      [](void* p) { static_cast<Pullback*>(p)->~Pullback(); }});
  }

  /// Inside a pullback: the gradient that arrived at an output, taken out of the tape; empty when there is none.
  Tensor take(const Tensor& output);
  /// Same, but zeros when none arrived (for ops with several outputs).
  Tensor take_or_zeros(const Tensor& output);

  struct Gradient {
    Tensor tensor;            // of the shape of the value; empty when the value is constant
    bool accumulate = false;  // add to what is there; otherwise overwrite (the memory is not initialised)
  };
  /// Inside a pullback: where the gradient of an input goes. Ask once per value: an op whose two inputs may be the same
  /// value drops the first handle, after its kernel has run, before it asks for the second.
  Gradient gradient(const Tensor& input);
  /// Same, for a kernel that can only add: zeros when nobody has written there yet.
  Gradient sum(const Tensor& input);
  /// Inside a pullback: adds a whole tensor to the gradient of an input; takes the handle without a copy where it can.
  void add(const Tensor& input, Tensor value);

  /// Columns of a tracked value as values of their own: one matrix product, several results. Their gradients are
  /// columns of the gradient of the whole. A value is split once; the whole may be used as well.
  Columns split(const Tensor& whole, std::span<const std::int64_t> widths);

  /// Starts from `seeds` (value, gradient of the scalar with respect to it) and runs all pullbacks.
  void backward(std::span<const std::pair<Tensor, Tensor>> seeds);
  /// Gradient of a leaf made by `variable`, after backward; empty when it got none.
  Tensor leaf_gradient(const Tensor& leaf) const;
  /// Forgets everything recorded; memory goes back to the arena.
  void clear();

 private:
  struct Step {
    void* object;
    void (*run)(void*, Tape&);
    void (*destroy)(void*);
  };
  struct Slot {
    Tensor gradient;
    std::int64_t handed = -1;  // the pullback that last asked for it
    // Of a column: the value it belongs to, where it begins there, whether its part of that gradient has been written.
    std::int64_t parent = 0, begin = 0;
    Shape parent_shape;
    bool filled = false;
    // Of a value that was split: its columns, and whether they share its gradient, so that parts may be unwritten.
    std::int64_t first_column = 0, columns = 0;
    bool by_columns = false;
  };
  std::int64_t new_slot();
  Slot& slot(std::int64_t node) { return slots_[static_cast<std::size_t>(node - 1)]; }
  void* reserve(std::size_t bytes, std::size_t alignment);
  Tensor parameter_gradient(const Tensor& parameter) const;
  Tensor column_home(const Slot& column, const Tensor& value);
  void complete_columns(Slot& whole);
  void make_unique(Slot& at);

  Arena& arena_;
  Stream stream_;
  bool recording_;
  Tensor gradients_;
  std::vector<Step> steps_;
  std::vector<Slot> slots_;
  std::vector<std::unique_ptr<std::byte[]>> pages_;
  std::size_t page_ = 0, used_ = 0;
  std::int64_t running_ = 0;
};

inline std::int64_t bytes_of(const Tape::Gradient& gradient) {
  return bytes_of(gradient.tensor) * (gradient.accumulate ? 2 : 1);
}

}  // namespace phasor
