#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/spec/problems.h"
#include "sweeps/spec.h"

namespace phasor::sweeps {

using Place = std::vector<std::size_t>;  // index of the point on each axis

/// Mistakes that cells of a sweep have and its base has not. Many cells share one mistake: it is told once, at the
/// point that makes it, or, where only a combination of points is wrong, once for each combination.
class Misfits {
 public:
  explicit Misfits(const std::vector<Axis>& axes) : axes_(axes) {}

  void exclude(const Place& cell) { excluded_.insert(cell); }
  void add(const Place& cell, const std::string& path, const std::string& message) {
    found_[{path, message}].insert(cell);
  }
  /// A path that a point sets and no experiment of the cell has.
  void add_unknown(const std::string& path) { unknown_paths_.insert(path); }
  bool empty() const { return found_.empty(); }

  void report(Document& sweep) const;

 private:
  using Cells = std::set<Place>;
  struct Source {
    std::size_t axis = 0;
    const Setting* setting = nullptr;
  };
  std::vector<std::size_t> relevant_axes(const Cells& cells) const;
  Source source_of(const Place& cell, const std::string& path) const;
  bool report_settings(Document& sweep, const std::vector<std::size_t>& relevant, const Cells& cells,
                       const std::string& path, const std::string& message) const;
  void report_combinations(Document& sweep, const std::vector<std::size_t>& relevant, const Cells& cells,
                           const std::string& path, const std::string& message) const;

  const std::vector<Axis>& axes_;
  Cells excluded_;
  std::map<std::pair<std::string, std::string>, Cells> found_;
  std::set<std::string> unknown_paths_;
};

}  // namespace phasor::sweeps
