#include "analysis/ablate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <set>

#include "analysis/outcome.h"
#include "analysis/text.h"
#include "core/base/error.h"

namespace phasor::analysis {
namespace {

using Key = std::vector<std::int64_t>;  // a point on each axis of a role

/// The axes of one role, and the coordinates of a trial on them.
class Role {
 public:
  Role(const Frame& frame, const std::string& name) : frame_(&frame) {
    for (std::size_t i = 0; i < frame.axes.size(); ++i) {
      if (frame.axes[i].role == name) axes_.push_back(i);
    }
  }
  const std::vector<std::size_t>& axes() const { return axes_; }
  Key key_of(const FrameRow& row) const {
    Key key;
    for (const std::size_t axis : axes_) key.push_back(row.at[axis]);
    return key;
  }
  /// Every combination of points, the first axis slowest; one empty key when there is no such axis. `fresh`: of an axis with
  /// points of the confirmation only these.
  std::vector<Key> keys(bool fresh = false) const {
    std::vector<Key> keys = {{}};
    for (const std::size_t axis : axes_) {
      std::vector<Key> longer;
      const std::size_t count = frame_->axes[axis].labels.size();
      const std::size_t first = count - static_cast<std::size_t>(frame_->axes[axis].fresh);
      for (const Key& key : keys) {
        for (std::size_t point = fresh && first < count ? first : 0; point < count; ++point) {
          longer.push_back(key);
          longer.back().push_back(static_cast<std::int64_t>(point));
        }
      }
      keys = std::move(longer);
    }
    return keys;
  }
  std::vector<std::string> labels(const Key& key) const {
    std::vector<std::string> labels;
    for (std::size_t i = 0; i < key.size(); ++i) {
      labels.push_back(frame_->axes[axes_[i]].labels[static_cast<std::size_t>(key[i])]);
    }
    return labels;
  }
  /// The value at a point for comparing: its number, or its place on the axis.
  double order(std::size_t i, std::int64_t point) const {
    const std::vector<Json>& values = frame_->axes[axes_[i]].values;
    const std::size_t at = static_cast<std::size_t>(point);
    return at < values.size() && values[at].is_number() ? values[at].as_number() : static_cast<double>(point);
  }
  void place(const Key& key, Key& at) const {
    for (std::size_t i = 0; i < key.size(); ++i) at[axes_[i]] = key[i];
  }
  bool numeric(std::size_t i) const {
    const std::vector<Json>& values = frame_->axes[axes_[i]].values;
    return !values.empty() && std::all_of(values.begin(), values.end(), [](const Json& v) { return v.is_number(); });
  }

 private:
  const Frame* frame_;
  std::vector<std::size_t> axes_;
};

/// One value of the select axes with its trials, by replicate.
struct Group {
  Key select;
  std::map<Key, std::size_t> trials;  // replicate to index of the frame's row
};

/// What is reported of one point of the average axes: the trials of the chosen value.
struct Reported {
  Key average;
  std::map<Key, std::optional<std::size_t>> trials;  // by replicate; nothing where the sweep has no such trial yet
};

class Ablation {
 public:
  Ablation(const Frame& frame, const TableSpec& spec)
      : frame_(frame), spec_(spec), rows_(frame, "row"), columns_(frame, "column"), selects_(frame, "select"),
        replicates_(frame, "replicate"), averages_(frame, "average") {}

  Table run();

 private:
  void check();
  void group();
  void resolve_ties();
  void start_trials();
  Cell make_cell(const Key& row, const Key& column);
  Setting make_setting(const std::map<Key, Group>& groups);
  void mark_edges(const Setting& setting, const std::vector<const Group*>& groups, Cell& cell) const;
  Reported report_of(const Key& row, const Key& column, const Key& average, const Group& winner);
  void expect_fresh(const std::map<Key, Group>& groups);
  Number make_number(std::size_t which, const Cell& cell, const std::vector<Reported>& chosen,
                     const std::vector<std::size_t>& all);
  void describe_cost(Cell& cell, const std::vector<std::size_t>& trials) const;
  void flag_parameters();
  void finish_varied();
  void count_trials();
  void count_trial(TrialStatus status);

  Outcome selected(std::size_t trial) const {
    const FrameRow& row = frame_.rows[trial];
    if (selects_.axes().empty()) return outcome_of(row);
    return outcome_of(frame_, row, spec_.select->series, spec_.select->at, spec_.select->direction);
  }
  Outcome reported(std::size_t trial, std::size_t which) const {
    return outcome_of(frame_, frame_.rows[trial], spec_.report[which], {}, Direction::maximise);
  }

  const Frame& frame_;
  const TableSpec& spec_;
  Role rows_, columns_, selects_, replicates_, averages_;
  std::map<std::pair<Key, Key>, std::map<Key, std::map<Key, Group>>> groups_;  // [row, column][average][select]
  std::map<std::pair<Key, Key>, std::map<Key, std::map<Key, Group>>> fresh_;   // the same, of the confirmation
  std::map<std::pair<Key, Key>, std::map<Key, std::string>> excluded_;         // [row, column][average]: a reason
  std::int64_t unnamed_ = 0;  // fresh trials that are expected and that the manifest does not name yet
  std::vector<Tie> ties_;  // the measured ones, each at the slice it is measured
  Table table_;
};

void Ablation::check() {
  if (!selects_.axes().empty() && !spec_.select) {
    throw UserError("table: no \"select\", but the sweep has an axis to choose on; say split, metric, slice and at");
  }
  for (const Series& series : spec_.report) need_measured(frame_, series, "report");
  if (!selects_.axes().empty()) need_measured(frame_, spec_.select->series, "select");
  if (spec_.baseline.empty()) return;
  const std::vector<Key> keys = rows_.keys();
  const bool known = std::any_of(keys.begin(), keys.end(), [&](const Key& key) {
    const std::vector<std::string> labels = rows_.labels(key);
    return join(labels, " / ") == spec_.baseline || std::find(labels.begin(), labels.end(), spec_.baseline) != labels.end();
  });
  if (!known) throw UserError("table.baseline: no row is labelled \"" + spec_.baseline + "\"");
}

void Ablation::group() {
  for (std::size_t i = 0; i < frame_.rows.size(); ++i) {
    const FrameRow& row = frame_.rows[i];
    const std::pair<Key, Key> cell = {rows_.key_of(row), columns_.key_of(row)};
    const Key average = averages_.key_of(row);
    if (row.status == TrialStatus::excluded) {
      excluded_[cell].emplace(average, row.message);
      continue;
    }
    auto& groups = results::is_fresh(frame_.axes, row.at) ? fresh_ : groups_;
    Group& group = groups[cell][average][selects_.key_of(row)];
    group.select = selects_.key_of(row);
    group.trials[replicates_.key_of(row)] = i;
  }
}

void Ablation::resolve_ties() {
  if (selects_.axes().empty()) return;
  for (Tie tie : spec_.select->ties) {
    if (!measured(frame_, tie.series) && !tie.slice_given) tie.series.slice = -1;
    if (measured(frame_, tie.series)) {
      ties_.push_back(tie);
    } else if (table_.done > 0) {
      table_.notes.push_back("no trial measured " + to_text(tie.series) + ", so it broke no ties");
    }
  }
  if (table_.done > 0) table_.spec.select->ties = ties_;  // what is shown is what was used
}

void Ablation::start_trials() {
  for (const FrameRow& row : frame_.rows) {
    TrialLine line;
    line.id = row.id;
    line.name = name_of(frame_.axes, row.at);
    line.message = row.message;
    line.file = row.file;
    line.at = row.at;
    line.status = row.status;
    line.fresh = results::is_fresh(frame_.axes, row.at);
    line.expected = !line.fresh;
    line.parameters = row.parameters;
    line.steps_to_solve = summary_of(row, "steps_to_solve");
    line.step_ms = summary_of(row, "step_ms");
    for (const Series& series : spec_.report) {
      const std::optional<Reading> reading = read_metric(row.evals, series, {}, Direction::maximise);
      line.reported.push_back(reading ? std::optional<double>(reading->value) : std::nullopt);
    }
    if (!selects_.axes().empty()) {
      line.selected = read_metric(row.evals, spec_.select->series, spec_.select->at, spec_.select->direction);
    }
    table_.trials.push_back(std::move(line));
  }
}

void Ablation::count_trial(TrialStatus status) {
  ++table_.expected;
  if (status == TrialStatus::done) ++table_.done;
  if (status == TrialStatus::diverged) ++table_.diverged;
  if (is_failure(status)) ++table_.failed;
  if (status == TrialStatus::missing) ++table_.missing;
}

/// Those of the selection; which ones confirm it is known cell by cell.
void Ablation::count_trials() {
  for (const FrameRow& row : frame_.rows) {
    if (row.status == TrialStatus::excluded) {
      ++table_.excluded;
    } else if (!results::is_fresh(frame_.axes, row.at)) {
      count_trial(row.status);
    }
  }
}

/// The trials that speak for what was chosen: those that chose it, or the fresh ones of the same value.
Reported Ablation::report_of(const Key& row, const Key& column, const Key& average, const Group& winner) {
  Key at(frame_.axes.size(), -1);
  rows_.place(row, at);
  columns_.place(column, at);
  averages_.place(average, at);
  selects_.place(winner.select, at);
  table_.chosen.push_back(at);
  Reported reported{average, {}};
  for (const auto& [replicate, trial] : winner.trials) {
    table_.trials[trial].chosen = true;
    if (!table_.confirms) reported.trials[replicate] = trial;
  }
  if (!table_.confirms) return reported;
  const std::map<Key, std::size_t>& found = fresh_[{row, column}][average][winner.select].trials;
  for (const Key& replicate : replicates_.keys(true)) {
    const auto trial = found.find(replicate);
    const bool known = trial != found.end();
    reported.trials[replicate] = known ? std::optional(trial->second) : std::nullopt;
    count_trial(known ? frame_.rows[trial->second].status : TrialStatus::missing);
    if (known) {
      table_.trials[trial->second].chosen = true;
      table_.trials[trial->second].expected = true;
    } else {
      ++unnamed_;
    }
  }
  return reported;
}

/// Where nothing can be chosen yet the fresh trials are expected all the same; where nothing ever can, there are none.
void Ablation::expect_fresh(const std::map<Key, Group>& groups) {
  if (!table_.confirms) return;
  const bool open = std::any_of(groups.begin(), groups.end(), [&](const auto& group) {
    return std::any_of(group.second.trials.begin(), group.second.trials.end(), [&](const auto& trial) {
      return frame_.rows[trial.second].status == TrialStatus::missing;
    });
  });
  if (!open) return;
  for (std::size_t i = 0; i < replicates_.keys(true).size(); ++i) count_trial(TrialStatus::missing);
  unnamed_ += static_cast<std::int64_t>(replicates_.keys(true).size());
}

Setting Ablation::make_setting(const std::map<Key, Group>& groups) {
  Setting setting;
  std::vector<Contestant> contestants;
  for (const auto& [key, group] : groups) {
    Candidate candidate;
    candidate.labels = selects_.labels(key);
    std::vector<double> scores;
    std::vector<std::vector<double>> tie_scores(ties_.size());
    std::set<std::int64_t> steps;
    for (const auto& [replicate, trial] : group.trials) {
      const Outcome outcome = selected(trial);
      count(candidate.counts, outcome.kind);
      if (outcome.kind != Outcome::Kind::finite || selects_.axes().empty()) continue;
      scores.push_back(outcome.value);
      steps.insert(outcome.step);
      for (std::size_t i = 0; i < ties_.size(); ++i) {
        const Series& series = ties_[i].series;
        const Direction direction = *direction_of(series.metric);
        const Outcome tie = outcome_of(frame_, frame_.rows[trial], series, spec_.select->at, direction);
        if (tie.kind == Outcome::Kind::finite) tie_scores[i].push_back(tie.value);
      }
    }
    candidate.score = describe(scores, spec_.select ? scale_of(spec_.select->series.metric) : Scale::linear).mean;
    candidate.steps.assign(steps.begin(), steps.end());
    Contestant contestant;
    for (std::size_t i = 0; i < key.size(); ++i) contestant.order.push_back(selects_.order(i, key[i]));
    contestant.whole = candidate.counts.whole();
    contestant.score = candidate.score.value_or(0.0);
    for (const std::vector<double>& values : tie_scores) {
      const bool all = values.size() == group.trials.size();
      contestant.tie_scores.push_back(all ? *describe(values).mean : std::numeric_limits<double>::quiet_NaN());
    }
    contestants.push_back(std::move(contestant));
    setting.candidates.push_back(std::move(candidate));
  }
  std::vector<Direction> directions;
  for (const Tie& tie : ties_) directions.push_back(*direction_of(tie.series.metric));
  setting.choice = choose(contestants, spec_.select ? spec_.select->direction : Direction::maximise, directions);
  if (setting.choice.chosen) setting.candidates[*setting.choice.chosen].chosen = true;
  return setting;
}

void Ablation::mark_edges(const Setting& setting, const std::vector<const Group*>& groups, Cell& cell) const {
  if (!setting.choice.chosen) return;
  for (std::size_t i = 0; i < selects_.axes().size(); ++i) {
    if (!selects_.numeric(i)) continue;  // named points have no edge
    std::set<double> grid;
    for (const Group* group : groups) grid.insert(selects_.order(i, group->select[i]));
    const double value = selects_.order(i, groups[*setting.choice.chosen]->select[i]);
    const std::string flag = frame_.axes[selects_.axes()[i]].name + "_edge";
    const bool known = std::find(cell.flags.begin(), cell.flags.end(), flag) != cell.flags.end();
    const bool edge = grid.size() > 1 && (value == *grid.begin() || value == *grid.rbegin());
    if (edge && !known) cell.flags.push_back(flag);
  }
}

/// Averages over the last axis, then the one before it, until one number is left.
double nested_mean(std::map<Key, double> values, Scale scale) {
  while (values.size() > 1 || !values.begin()->first.empty()) {
    std::map<Key, std::vector<double>> shorter;
    for (const auto& [key, value] : values) shorter[Key(key.begin(), std::prev(key.end()))].push_back(value);
    values.clear();
    for (auto& [key, group] : shorter) values[key] = *describe(std::move(group), scale).mean;
  }
  return values.begin()->second;
}

Number Ablation::make_number(std::size_t which, const Cell& cell,
                             const std::vector<Reported>& chosen, const std::vector<std::size_t>& all) {
  Number number;
  number.series = spec_.report[which];
  number.flags = cell.flags;
  if (!cell.chosen()) {
    for (const std::size_t trial : all) count(number.counts, reported(trial, which).kind);
    number.flags.push_back("none_complete");
    return number;
  }
  std::map<Key, Outcome::Kind> kinds;               // by replicate, the worst over the settings
  std::map<Key, std::map<Key, double>> by_setting;  // by replicate and point of the average axes
  for (const auto& [average, trials] : chosen) {
    for (const auto& [replicate, trial] : trials) {
      const Outcome outcome = trial ? reported(*trial, which) : Outcome{Outcome::Kind::missing};
      Outcome::Kind& kind = kinds.emplace(replicate, Outcome::Kind::finite).first->second;
      kind = std::max(kind, outcome.kind);
      by_setting[replicate][average] = outcome.value;
    }
  }
  const Scale scale = scale_of(number.series.metric);
  std::vector<double> values;
  for (const auto& [replicate, kind] : kinds) {
    count(number.counts, kind);
    if (kind == Outcome::Kind::finite) values.push_back(nested_mean(by_setting[replicate], scale));
  }
  if (!number.counts.whole()) {
    number.flags.push_back("incomplete");
    return number;
  }
  number.statistics = describe(values, scale);
  if (spec_.solved_at && number.series.metric == spec_.primary.metric) {
    const bool more = *direction_of(number.series.metric) == Direction::maximise;
    number.solved = std::count_if(values.begin(), values.end(), [&](double value) {
      return more ? value >= *spec_.solved_at : value <= *spec_.solved_at;
    });
  }
  return number;
}

void Ablation::describe_cost(Cell& cell, const std::vector<std::size_t>& trials) const {
  std::vector<double> times;
  for (const std::size_t trial : trials) {
    cell.parameters = std::max(cell.parameters, frame_.rows[trial].parameters);
    const std::optional<double> time = summary_of(frame_.rows[trial], "step_ms");
    if (time && std::isfinite(*time)) times.push_back(*time);
  }
  cell.step_ms = describe(std::move(times)).mean;
}

Cell Ablation::make_cell(const Key& row, const Key& column) {
  Cell cell;
  const auto& settings = groups_[{row, column}];
  const auto& excluded = excluded_[{row, column}];
  std::vector<Reported> chosen;
  std::vector<std::size_t> all, of_choice;
  for (const Key& average : averages_.keys()) {
    const auto found = settings.find(average);
    if (found == settings.end()) {
      const auto reason = excluded.find(average);
      cell.settings.emplace_back();
      cell.settings.back().labels = averages_.labels(average);
      cell.settings.back().excluded = reason == excluded.end() ? "not in the sweep" : reason->second;
      continue;
    }
    Setting setting = make_setting(found->second);
    setting.labels = averages_.labels(average);
    std::vector<const Group*> groups;
    for (const auto& [key, group] : found->second) {
      groups.push_back(&group);
      for (const auto& [replicate, trial] : group.trials) all.push_back(trial);
    }
    if (setting.choice.chosen) {
      const Group& winner = *groups[*setting.choice.chosen];
      chosen.push_back(report_of(row, column, average, winner));
      for (const auto& [replicate, trial] : chosen.back().trials) of_choice.push_back(trial.value_or(winner.trials.begin()->second));
      cell.trials += table_.confirms ? static_cast<std::int64_t>(chosen.back().trials.size()) : 0;
    } else {
      expect_fresh(found->second);
    }
    mark_edges(setting, groups, cell);
    cell.settings.push_back(std::move(setting));
  }
  if (settings.empty()) {
    cell.excluded = cell.settings.front().excluded;
    cell.flags.push_back("excluded");
  } else if (settings.size() < cell.settings.size()) {
    cell.flags.push_back("settings_excluded");
  }
  if (cell.tied() > 1) cell.flags.push_back("tied");
  cell.trials += static_cast<std::int64_t>(all.size());
  describe_cost(cell, cell.chosen() ? of_choice : all);
  for (std::size_t which = 0; which < spec_.report.size(); ++which) {
    if (cell.excluded.empty()) {
      cell.numbers.push_back(make_number(which, cell, chosen, all));
    } else {
      cell.numbers.push_back({spec_.report[which], {}, {}, std::nullopt, cell.flags});
    }
  }
  return cell;
}

/// Marks rows with more than 5 % more parameters than the smallest of their column: such a difference can be the effect.
void Ablation::flag_parameters() {
  for (std::size_t column = 0; column < table_.columns.size(); ++column) {
    std::int64_t least = 0;
    for (std::size_t row = 0; row < table_.rows.size(); ++row) {
      const Cell& cell = table_.cell(row, column);
      if (cell.parameters > 0 && (least == 0 || cell.parameters < least)) least = cell.parameters;
    }
    for (std::size_t row = 0; row < table_.rows.size(); ++row) {
      Cell& cell = table_.cells[row * table_.columns.size() + column];
      if (static_cast<double>(cell.parameters) <= 1.05 * static_cast<double>(least)) continue;
      cell.flags.push_back("parameters");
      for (Number& number : cell.numbers) number.flags.push_back("parameters");
    }
  }
}

/// The leaves below the varied paths, as columns, with every trial's value.
void Ablation::finish_varied() {
  std::set<std::string> heads;
  for (const std::string& path : frame_.varied) {
    bool found = false;
    for (const FrameRow& row : frame_.rows) {
      for (const auto& [leaf, value] : row.columns) {
        if (leaf != path && !leaf.starts_with(path + ".")) continue;
        heads.insert(leaf);
        found = true;
      }
    }
    if (!found) heads.insert(path);
  }
  for (const results::ManifestAxis& axis : frame_.axes) heads.erase(head_of(axis));
  table_.varied.assign(heads.begin(), heads.end());
  for (std::size_t i = 0; i < frame_.rows.size(); ++i) {
    const std::map<std::string, Json> columns(frame_.rows[i].columns.begin(), frame_.rows[i].columns.end());
    for (const std::string& head : table_.varied) {
      const auto value = columns.find(head);
      const bool text = value != columns.end() && value->second.is_string();
      table_.trials[i].varied.push_back(value == columns.end() ? std::string()
                                        : text                 ? value->second.as_string()
                                                               : value->second.canonical());
    }
  }
}

Table Ablation::run() {
  table_.spec = spec_;
  table_.axes = frame_.axes;
  table_.ignored = frame_.ignored;
  table_.damaged = frame_.damaged;
  table_.confirms = std::any_of(frame_.axes.begin(), frame_.axes.end(), [](const auto& axis) { return axis.fresh > 0; });
  count_trials();
  check();
  resolve_ties();
  start_trials();
  finish_varied();
  group();
  table_.replicates = static_cast<std::int64_t>(replicates_.keys(true).size());
  const std::vector<Key> rows = rows_.keys(), columns = columns_.keys();
  for (const Key& row : rows) table_.rows.push_back(rows_.labels(row));
  for (const Key& column : columns) table_.columns.push_back(columns_.labels(column));
  for (const Key& row : rows) {
    for (const Key& column : columns) table_.cells.push_back(make_cell(row, column));
  }
  flag_parameters();
  if (unnamed_ > 0)
    table_.notes.push_back(counted(unnamed_, "fresh trial") + " of the confirmation await the selection: `phasor sweep` runs them when it is complete");
  return std::move(table_);
}

}  // namespace

Table ablate(const Frame& frame, const TableSpec& spec) { return Ablation(frame, spec).run(); }

}  // namespace phasor::analysis
