#include "analysis/frame/hygiene.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>

#include "analysis/text.h"

namespace phasor::analysis {
namespace {

/// The most that any trial of a task shares in one slice.
struct Shared {
  double rows = 0.0, by_chance = 0.0;
  std::int64_t of = 0;
  bool parts = false;  // what is counted are parts of rows
};
using Place = std::tuple<std::string, std::string, std::int64_t>;  // task, split, slice

std::int64_t rows_evaluated(const FrameRow& row, const std::string& split, std::int64_t slice) {
  for (const results::EvalPoint& point : row.evals)
    if (point.split == split && point.slice == slice && point.metric == "sequence_accuracy") return point.count;
  return 0;
}

std::string task_of(const FrameRow& row) {
  for (const auto& [path, value] : row.columns)
    if (path == "task.name" && value.is_string()) return value.as_string();
  return "";
}

}  // namespace

std::vector<std::string> overlap_notes(const Frame& frame) {
  constexpr std::string_view shared = "shared_rows.", chance = "shared_by_chance.";
  std::map<Place, Shared> most;
  std::int64_t records = 0, unmeasured = 0;
  for (const FrameRow& row : frame.rows) {
    if (row.status != TrialStatus::done) continue;
    ++records;
    bool measured = false;
    for (const auto& [name, value] : row.summary) {
      const bool is_shared = name.starts_with(shared);
      if (!is_shared && !name.starts_with(chance)) continue;
      const std::string where = name.substr(is_shared ? shared.size() : chance.size());  // "test.32"
      const std::size_t dot = where.find('.');
      if (dot == std::string::npos) continue;
      measured = true;
      const std::string split = where.substr(0, dot);
      const std::int64_t slice = std::stoll(where.substr(dot + 1));
      Shared& place = most[{task_of(row), split, slice}];
      (is_shared ? place.rows : place.by_chance) = std::max(is_shared ? place.rows : place.by_chance, value);
      const auto units = std::find_if(row.summary.begin(), row.summary.end(), [&](const auto& s) { return s.first == "units." + where; });
      const std::int64_t rows = rows_evaluated(row, split, slice);
      const std::int64_t of = units == row.summary.end() ? rows : std::llround(units->second);
      place.parts = place.parts || of != rows;
      place.of = std::max(place.of, of);
    }
    unmeasured += measured ? 0 : 1;
  }
  std::vector<std::string> notes;
  for (const auto& [place, found] : most) {
    if (found.rows == 0.0) continue;
    const auto& [task, split, slice] = place;
    // More than chance explains (a Poisson count, five deviations) is a leak of the task.
    const bool leak = found.rows > found.by_chance + 5.0 * std::sqrt(found.by_chance) + 1.0;
    notes.push_back((leak ? "LEAK: " : "") + task + " " + split + " " + std::to_string(slice) + ": up to " +
                    grouped(std::llround(found.rows)) + " of " + grouped(found.of) + (found.parts ? " parts of rows" : " rows") + " were trained on (" +
                    digits(found.by_chance) + " by chance)");
  }
  if (notes.empty() && unmeasured < records) notes.push_back("no evaluation row was trained on");
  if (unmeasured > 0) notes.push_back("rows shared with training were not measured in " + counted(unmeasured, "trial"));
  return notes;
}

}  // namespace phasor::analysis
