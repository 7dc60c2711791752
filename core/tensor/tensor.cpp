#include "core/tensor/tensor.h"

namespace phasor {

std::size_t size_of(Dtype dtype) { return dtype == Dtype::f64 ? 8 : 4; }

const char* name_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return "f32";
    case Dtype::f64: return "f64";
    case Dtype::i32: return "i32";
  }
  return "?";
}

Tensor::Tensor(Arena& arena, Dtype dtype, Shape shape) : shape_(shape), row_stride_(shape.width()), dtype_(dtype) {
  storage_ = arena.allocate(static_cast<std::size_t>(shape.size()) * size_of(dtype));
  data_ = storage_->data;
}

Tensor Tensor::spaced(Arena& arena, Dtype dtype, Shape shape) {
  constexpr std::size_t period = 1024, room = 64;  // bytes
  const std::size_t bytes = static_cast<std::size_t>(shape.width()) * size_of(dtype);
  if (shape.rows() < 2 || bytes == 0 || bytes % period != 0) return Tensor(arena, dtype, shape);
  const auto stride = shape.width() + static_cast<std::int64_t>(room / size_of(dtype));
  Tensor out(arena, dtype, {shape.rows(), stride});
  out.shape_ = shape;
  out.row_stride_ = stride;
  return out;
}

Tensor Tensor::borrow(void* data, Dtype dtype, Shape shape) {
  Tensor out;
  out.data_ = data;
  out.shape_ = shape;
  out.row_stride_ = shape.width();
  out.dtype_ = dtype;
  return out;
}

Tensor::Tensor(const Tensor& other)
    : storage_(other.storage_), data_(other.data_), shape_(other.shape_), row_stride_(other.row_stride_),
      node_(other.node_), dtype_(other.dtype_) {
  if (storage_ != nullptr) storage_->references.fetch_add(1, std::memory_order_relaxed);
}

Tensor::Tensor(Tensor&& other) noexcept
    : storage_(std::exchange(other.storage_, nullptr)), data_(std::exchange(other.data_, nullptr)),
      shape_(other.shape_), row_stride_(other.row_stride_), node_(std::exchange(other.node_, 0)), dtype_(other.dtype_) {}

Tensor& Tensor::operator=(Tensor other) noexcept {
  std::swap(storage_, other.storage_);
  std::swap(data_, other.data_);
  std::swap(shape_, other.shape_);
  std::swap(row_stride_, other.row_stride_);
  std::swap(node_, other.node_);
  std::swap(dtype_, other.dtype_);
  return *this;
}

Tensor::~Tensor() {
  if (storage_ != nullptr && storage_->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
    storage_->home->release(storage_);
}

bool Tensor::unique() const {
  return storage_ != nullptr && storage_->references.load(std::memory_order_acquire) == 1;
}

Tensor Tensor::reshape(Shape shape) const {
  PHASOR_CHECK(shape.size() == shape_.size(), "reshape " + shape_.text() + " to " + shape.text());
  Tensor out = *this;
  out.shape_ = shape;
  if (contiguous())
    out.row_stride_ = shape.width();
  else
    PHASOR_CHECK(shape.width() == width(), "reshape of a strided tensor keeps its rows");
  return out;
}

Tensor Tensor::columns(std::int64_t begin, std::int64_t count) const {
  PHASOR_CHECK(begin >= 0 && count >= 0 && begin + count <= width(), "columns of " + shape_.text());
  Tensor out = *this;
  out.shape_ = shape_.with_row({count});
  out.data_ = static_cast<std::byte*>(data_) + static_cast<std::size_t>(begin) * size_of(dtype_);
  out.node_ = 0;
  return out;
}

Tensor Tensor::detached() const {
  Tensor out = *this;
  out.node_ = 0;
  return out;
}

}  // namespace phasor
