#include "sweeps/misfits.h"

#include <algorithm>

namespace phasor::sweeps {

namespace {

bool at_or_below(const std::string& path, const std::string& top) {
  return path.starts_with(top) && (path.size() == top.size() || path[top.size()] == '.' || path[top.size()] == '[');
}

/// `{"variant": "RoPE", "task": "S3"}`, as an exclude rule has it.
std::string rule_text(const std::vector<Axis>& axes, const std::vector<std::size_t>& which, const Place& cell) {
  std::string text;
  for (const std::size_t axis : which) {
    text += (text.empty() ? "" : ", ") + json_quoted(axes[axis].name) + ": " +
            json_quoted(axes[axis].points[cell[axis]].label);
  }
  return "{" + text + "}";
}

}  // namespace

/// The axes on which it matters where a cell stands. An axis does not matter when all other points of it have the
/// mistake as well; excluded cells agree with everything.
std::vector<std::size_t> Misfits::relevant_axes(const Cells& cells) const {
  std::vector<std::size_t> relevant;
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    const bool matters = std::any_of(cells.begin(), cells.end(), [&](const Place& cell) {
      Place other = cell;
      for (other[axis] = 0; other[axis] < axes_[axis].points.size(); ++other[axis]) {
        if (!cells.contains(other) && !excluded_.contains(other)) return true;
      }
      return false;
    });
    if (matters) relevant.push_back(axis);
  }
  return relevant;
}

/// What a cell's points set at the path, the last of them; or below it, where the path itself is what is wrong.
Misfits::Source Misfits::source_of(const Place& cell, const std::string& path) const {
  for (std::size_t axis = axes_.size(); axis-- > 0;) {
    for (const Setting& setting : axes_[axis].points[cell[axis]].settings) {
      if (at_or_below(path, setting.path) || at_or_below(setting.path, path)) return {axis, &setting};
    }
  }
  return {};
}

/// One point is enough for the mistake (several may make it alike): told where they set it. False when it is not there
/// that they do.
bool Misfits::report_settings(Document& sweep, const std::vector<std::size_t>& relevant, const Cells& cells,
                              const std::string& path, const std::string& message) const {
  std::map<const Setting*, std::size_t> sources;
  for (const Place& cell : cells) {
    const Source source = source_of(cell, path);
    if (source.setting == nullptr || (!relevant.empty() && source.axis != relevant.front())) return false;
    sources.emplace(source.setting, source.axis);
  }
  std::set<std::string> told;
  for (const auto& [setting, axis] : sources) {
    const bool unknown = unknown_paths_.contains(setting->path);
    if (unknown && !axes_[axis].path.empty()) {
      const std::string place = axes_[axis].place + ".path";
      if (told.insert(place).second) sweep.problem(place, setting->path + ": " + message);
    } else if (unknown || !at_or_below(path, setting->path)) {
      sweep.key_problem(setting->place, message);
    } else {
      sweep.problem(setting->place + path.substr(setting->path.size()), message);
    }
  }
  return true;
}

/// Once for each combination of points of the relevant axes.
void Misfits::report_combinations(Document& sweep, const std::vector<std::size_t>& relevant, const Cells& cells,
                                  const std::string& path, const std::string& message) const {
  if (relevant.empty()) {
    sweep.problem("axes", "no cell fits: " + path + ": " + message);
    return;
  }
  std::map<std::vector<std::size_t>, Place> combinations;
  for (const Place& cell : cells) {
    std::vector<std::size_t> key;
    for (const std::size_t axis : relevant) key.push_back(cell[axis]);
    combinations.emplace(std::move(key), cell);
  }
  for (const auto& [key, cell] : combinations) {
    const std::string rule = rule_text(axes_, relevant, cell);
    sweep.problem(
        axes_[relevant.front()].points[cell[relevant.front()]].place,
        "does not fit: " + rule + ": " + path + ": " + message + "; change a point, or add " + rule + " to exclude");
  }
}

void Misfits::report(Document& sweep) const {
  for (const auto& [what, cells] : found_) {
    const auto& [path, message] = what;
    const std::vector<std::size_t> relevant = relevant_axes(cells);
    if (relevant.size() <= 1 && report_settings(sweep, relevant, cells, path, message)) continue;
    report_combinations(sweep, relevant, cells, path, message);
  }
}

}  // namespace phasor::sweeps
