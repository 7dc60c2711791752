#include "analysis/frame/mixtures.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <tuple>

#include "analysis/text.h"
#include "core/base/error.h"

namespace phasor::analysis {
namespace {

bool gives_numbers(const FrameRow& row) {
  return row.status == TrialStatus::done || row.status == TrialStatus::diverged;
}

/// The facts that a whole table must share, as (what it is, value).
std::vector<std::pair<std::string, std::string>> build_facts(const FrameRow& row) {
  const auto known = [&](const char* name) {
    const std::string value = provenance_of(row, name);
    return value.empty() ? std::string("unknown") : value;
  };
  const std::string dirty = provenance_of(row, "dirty");
  const bool changed = !dirty.empty() && dirty != "0" && dirty != "false" && dirty != "no";
  std::vector<std::pair<std::string, std::string>> facts = {
      {"commit", known("commit") + (changed ? " with local changes" : "")},
      {"processor", known("processor")},
      {"device", known("device")}};
  for (const auto& [name, value] : row.provenance) {
    if (name.starts_with("numerics")) facts.emplace_back(name, value);
  }
  return facts;
}

using Values = std::map<std::string, const FrameRow*>;  // value to the first trial that has it

[[noreturn]] void refuse(const Frame& frame, const std::string& what, const Values& values, const std::string& remedy) {
  const auto& [first, first_row] = *values.begin();
  const auto& [second, second_row] = *std::next(values.begin());
  throw UserError("table: trials of different " + what + ": " + name_of(frame.axes, first_row->at) + " has \"" + first +
                  "\", " + name_of(frame.axes, second_row->at) + " has \"" + second + "\"; " + remedy);
}

/// Rows may be tasks; nobody takes those for the same data.
std::string task_of(const FrameRow& row) {
  for (const auto& [path, value] : row.columns) {
    if (path == "task.name" && value.is_string()) return value.as_string();
  }
  return "";
}

void check_data(const Frame& frame) {
  std::map<std::tuple<std::vector<std::int64_t>, std::string, std::string>, Values> seen;
  for (const FrameRow& row : frame.rows) {
    if (!gives_numbers(row)) continue;
    std::vector<std::int64_t> place;
    for (std::size_t i = 0; i < frame.axes.size(); ++i) {
      if (frame.axes[i].role == "column" || frame.axes[i].role == "average") place.push_back(row.at[i]);
    }
    const std::string task = task_of(row);
    for (const auto& [name, value] : row.provenance) {
      if (!name.starts_with("data.") || name.starts_with("data.train")) continue;
      Values& values = seen[{place, task, name}];
      values.emplace(value, &row);
      if (values.size() > 1) {
        refuse(frame, "evaluation data (" + name + ") in one column", values,
               "rerun the trials so that all are judged on the same data, or make the axis that changes it a column");
      }
    }
  }
}

}  // namespace

std::vector<std::string> check_mixtures(const Frame& frame, bool allow_mixed) {
  check_data(frame);
  std::map<std::string, Values> seen;
  for (const FrameRow& row : frame.rows) {
    if (!gives_numbers(row)) continue;
    for (const auto& [what, value] : build_facts(row)) seen[what].emplace(value, &row);
  }
  std::vector<std::string> notes;
  std::string counts;
  for (const char* what : {"commit", "processor", "device"}) {
    if (!seen.contains(what)) continue;
    counts += (counts.empty() ? "" : ", ") + counted(static_cast<std::int64_t>(seen[what].size()), what);
  }
  if (!counts.empty()) notes.push_back(counts);
  for (const auto& [what, values] : seen) {
    if (values.size() < 2) continue;
    if (!allow_mixed) {
      refuse(frame, what, values, "rerun the older ones, or pass --allow-mixed to put them side by side");
    }
    std::string list;
    for (const auto& [value, row] : values) list += (list.empty() ? "" : ", ") + value;
    notes.push_back("mixed " + what + ": " + list);
  }
  return notes;
}

}  // namespace phasor::analysis
