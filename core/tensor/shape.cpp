#include "core/tensor/shape.h"

#include "core/base/error.h"

namespace phasor {

Shape::Shape(std::initializer_list<std::int64_t> sizes) {
  PHASOR_CHECK(sizes.size() <= max_rank, "a tensor has at most five axes");
  for (const std::int64_t size : sizes) {
    PHASOR_CHECK(size >= 0, "an axis has a negative size");
    sizes_[static_cast<std::size_t>(rank_++)] = size;
  }
}

std::int64_t Shape::rows() const {
  std::int64_t product = 1;
  for (int axis = 0; axis < leading(); ++axis) product *= (*this)[axis];
  return product;
}

std::int64_t Shape::width() const {
  std::int64_t product = 1;
  for (int axis = leading(); axis < rank_; ++axis) product *= (*this)[axis];
  return product;
}

Shape Shape::with_row(std::initializer_list<std::int64_t> row) const {
  PHASOR_CHECK(leading() + static_cast<int>(row.size()) <= max_rank, "a tensor has at most five axes");
  Shape out;
  for (int axis = 0; axis < leading(); ++axis) out.sizes_[static_cast<std::size_t>(out.rank_++)] = (*this)[axis];
  for (const std::int64_t size : row) out.sizes_[static_cast<std::size_t>(out.rank_++)] = size;
  return out;
}

std::string Shape::text() const {
  std::string text = "[";
  for (int axis = 0; axis < rank_; ++axis) text += (axis == 0 ? "" : ", ") + std::to_string((*this)[axis]);
  return text + "]";
}

bool Shape::operator==(const Shape& other) const {
  if (rank_ != other.rank_) return false;
  for (int axis = 0; axis < rank_; ++axis)
    if ((*this)[axis] != other[axis]) return false;
  return true;
}

}  // namespace phasor
