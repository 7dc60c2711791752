#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace phasor {

/// Sizes of up to five axes. The leading axes (two, or one for a matrix, none for a vector) count rows; the others make
/// one row, which is contiguous: [batch, time, heads, head_dim] is batch*time rows of heads*head_dim.
class Shape {
 public:
  static constexpr int max_rank = 5;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return sizes_[static_cast<std::size_t>(axis < 0 ? axis + rank_ : axis)]; }
  std::int64_t size() const { return rows() * width(); }
  std::int64_t rows() const;
  std::int64_t width() const;
  /// Rows [batch, time], then another row: with_row({heads, head_dim}).
  Shape with_row(std::initializer_list<std::int64_t> row) const;
  std::string text() const;  // "[2, 7, 8]"

  bool operator==(const Shape& other) const;

 private:
  int leading() const { return rank_ <= 1 ? 0 : (rank_ == 2 ? 1 : 2); }

  std::array<std::int64_t, max_rank> sizes_{};
  int rank_ = 0;
};

}  // namespace phasor
