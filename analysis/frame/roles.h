#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/frame/frame.h"

namespace phasor::analysis {

using Key = std::vector<std::int64_t>;  // a point on each axis of a role

/// The axes of one role, and the coordinates of a trial on them. The frame must outlive it.
class Role {
 public:
  Role(const Frame& frame, const std::string& name);
  const std::vector<std::size_t>& axes() const { return axes_; }
  Key key_of(const FrameRow& row) const;
  /// Every combination of points, the first axis slowest; one empty key when there is no such axis. `fresh`: of an axis with
  /// points of the confirmation only these.
  std::vector<Key> keys(bool fresh = false) const;
  std::vector<std::string> labels(const Key& key) const;
  /// The value at a point for comparing: its number, or its place on the axis.
  double order(std::size_t i, std::int64_t point) const;
  /// Writes the points of a key into a place on all axes.
  void place(const Key& key, Key& at) const;
  bool numeric(std::size_t i) const;

 private:
  const Frame* frame_;
  std::vector<std::size_t> axes_;
};

}  // namespace phasor::analysis
