#include "analysis/selection/outcome.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/text.h"
#include "core/base/error.h"

namespace phasor::analysis {

Outcome outcome_of(const FrameRow& row) {
  if (row.status == TrialStatus::done) return {Outcome::Kind::finite};
  if (row.status == TrialStatus::diverged) return {Outcome::Kind::diverged};
  return {is_failure(row.status) ? Outcome::Kind::failed : Outcome::Kind::missing};
}

Outcome outcome_of(const Frame& frame, const FrameRow& row, const Series& series, const At& at, Direction direction) {
  if (row.status != TrialStatus::done) return outcome_of(row);
  const std::optional<Reading> reading = read_metric(row.evals, series, at, direction);
  if (!reading) return {Outcome::Kind::missing};
  if (reading->too_few) {
    throw UserError("table.select: the mean of the last " + std::to_string(at.k) + " evaluations, but " +
                    name_of(frame.axes, row.at) + " has fewer of " + to_text(series) +
                    "; lower k, or evaluate more often");
  }
  if (!std::isfinite(reading->value)) return {Outcome::Kind::diverged};
  return {Outcome::Kind::finite, reading->value, reading->step};
}

void count(Counts& counts, Outcome::Kind kind) {
  ++counts.expected;
  switch (kind) {
    case Outcome::Kind::finite:
      ++counts.finite;
      break;
    case Outcome::Kind::missing:
      ++counts.missing;
      break;
    case Outcome::Kind::diverged:
      ++counts.diverged;
      break;
    case Outcome::Kind::failed:
      ++counts.failed;
      break;
  }
}

bool measured(const Frame& frame, const Series& series) {
  return std::any_of(frame.rows.begin(), frame.rows.end(), [&](const FrameRow& row) {
    return row.status == TrialStatus::done && read_metric(row.evals, series, {}, Direction::maximise).has_value();
  });
}

void need_measured(const Frame& frame, const Series& series, const std::string& place) {
  std::set<Series> known;
  bool any = false;
  for (const FrameRow& row : frame.rows) {
    if (row.status != TrialStatus::done) continue;
    any = true;
    for (const results::EvalPoint& point : row.evals) known.insert({point.split, point.metric, point.slice});
  }
  if (!any || known.contains(series) || measured(frame, series)) return;
  std::vector<std::string> names;
  for (const Series& one : known) names.push_back(to_text(one));
  throw UserError("table." + place + ": no trial measured " + to_text(series) + "; they measured " +
                  (names.empty() ? std::string("nothing") : join(names, ", ")));
}

std::optional<double> summary_of(const FrameRow& row, const std::string& name) {
  for (const auto& [known, value] : row.summary) {
    if (known == name) return value;
  }
  return std::nullopt;
}

}  // namespace phasor::analysis
