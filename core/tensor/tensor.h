#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/tensor/arena.h"
#include "core/tensor/shape.h"
#include "core/tensor/view.h"

namespace phasor {

enum class Dtype : std::uint8_t { f32, f64, i32 };
std::size_t size_of(Dtype dtype);
const char* name_of(Dtype dtype);

/// A value handle on shared memory: copying a Tensor copies the handle. Rows (see Shape) may stand further apart than
/// they are wide, so that q, k and v can be columns of one matrix product.
class Tensor {
 public:
  Tensor() = default;
  /// Memory from an arena, not initialised.
  Tensor(Arena& arena, Dtype dtype, Shape shape);
  /// The same, with room between rows that are a multiple of a kilobyte long. Neighbours down a column would otherwise share
  /// a few sets of the caches, and a matrix product that reads columns runs at half its speed (docs/performance.md).
  static Tensor spaced(Arena& arena, Dtype dtype, Shape shape);
  /// A view of memory that somebody else owns and keeps alive (parameters).
  static Tensor borrow(void* data, Dtype dtype, Shape shape);

  Tensor(const Tensor& other);
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor other) noexcept;
  ~Tensor();

  explicit operator bool() const { return data_ != nullptr; }
  Dtype dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::int64_t size(int axis) const { return shape_[axis]; }
  std::int64_t size() const { return shape_.size(); }
  std::int64_t rows() const { return shape_.rows(); }
  std::int64_t width() const { return shape_.width(); }
  std::int64_t row_stride() const { return row_stride_; }  // in elements
  bool contiguous() const { return row_stride_ == width() || rows() <= 1; }
  /// No other handle shares the memory: it may be changed in place.
  bool unique() const;

  void* data() const { return data_; }
  template <class T>
  T* as() const {
    PHASOR_CHECK(size_of(dtype_) == sizeof(T), "element type of a tensor");
    return static_cast<T*>(data_);
  }
  View view() const { return {data_, row_stride_}; }

  /// The same elements with other axes. Rows and width must stay when the tensor is not contiguous.
  Tensor reshape(Shape shape) const;
  /// Columns begin .. begin+count-1 of every row, as [rows.., count]. The result is not tracked (see Tape::split).
  Tensor columns(std::int64_t begin, std::int64_t count) const;

  /// Place of this value on the tape: 0 = constant; > 0 = result of an op; < 0 = parameter, -1 - offset in the flat
  /// gradient. Kept by handles and reshapes.
  std::int64_t node() const { return node_; }
  void set_node(std::int64_t node) { node_ = node; }
  Tensor detached() const;

 private:
  Storage* storage_ = nullptr;
  void* data_ = nullptr;
  Shape shape_;
  std::int64_t row_stride_ = 0;
  std::int64_t node_ = 0;
  Dtype dtype_ = Dtype::f32;
};

}  // namespace phasor
