#include "analysis/table/trial_lines.h"

#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "analysis/selection/outcome.h"

namespace phasor::analysis {

std::vector<TrialLine> trial_lines(const Frame& frame, const TableSpec& spec, bool selects) {
  std::vector<TrialLine> lines;
  lines.reserve(frame.rows.size());
  for (const FrameRow& row : frame.rows) {
    TrialLine line;
    line.id = row.id;
    line.name = name_of(frame.axes, row.at);
    line.message = row.message;
    line.file = row.file;
    line.at = row.at;
    line.status = row.status;
    line.fresh = results::is_fresh(frame.axes, row.at);
    line.expected = !line.fresh;
    line.parameters = row.parameters;
    line.steps_to_solve = summary_of(row, "steps_to_solve");
    line.step_ms = summary_of(row, "step_ms");
    line.spikes = summary_of(row, "spikes");
    line.clipped_share = summary_of(row, "clipped_share");
    for (const Series& series : spec.report) {
      const std::optional<Reading> reading = read_metric(row.evals, series, {}, Direction::maximise);
      line.reported.push_back(reading ? std::optional<double>(reading->value) : std::nullopt);
    }
    if (selects) line.selected = read_metric(row.evals, spec.select->series, spec.select->at, spec.select->direction);
    lines.push_back(std::move(line));
  }
  return lines;
}

void add_varied(const Frame& frame, Table& table) {
  std::set<std::string> heads;
  for (const std::string& path : frame.varied) {
    bool found = false;
    for (const FrameRow& row : frame.rows) {
      for (const auto& [leaf, value] : row.columns) {
        if (leaf != path && !leaf.starts_with(path + ".")) continue;
        heads.insert(leaf);
        found = true;
      }
    }
    if (!found) heads.insert(path);
  }
  for (const results::ManifestAxis& axis : frame.axes) heads.erase(head_of(axis));
  table.varied.assign(heads.begin(), heads.end());
  for (std::size_t i = 0; i < frame.rows.size(); ++i) {
    const std::map<std::string, Json> columns(frame.rows[i].columns.begin(), frame.rows[i].columns.end());
    for (const std::string& head : table.varied) {
      const auto value = columns.find(head);
      const bool text = value != columns.end() && value->second.is_string();
      table.trials[i].varied.push_back(value == columns.end() ? std::string()
                                       : text                 ? value->second.as_string()
                                                              : value->second.canonical());
    }
  }
}

}  // namespace phasor::analysis
