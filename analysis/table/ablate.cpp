#include "analysis/table/ablate.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "analysis/frame/roles.h"
#include "analysis/selection/outcome.h"
#include "analysis/table/comparison.h"
#include "analysis/table/flags.h"
#include "analysis/table/numbers.h"
#include "analysis/table/trial_lines.h"
#include "analysis/text.h"
#include "core/base/error.h"

namespace phasor::analysis {
namespace {

/// One value of the select axes with its trials, by replicate.
struct Group {
  Key select;
  std::map<Key, std::size_t> trials;  // replicate to index of the frame's row
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
  Cell make_cell(const Key& row, const Key& column);
  Setting make_setting(const std::map<Key, Group>& groups);
  void mark_edges(const Setting& setting, const std::vector<const Group*>& groups, Cell& cell) const;
  Reported report_of(const Key& row, const Key& column, const Key& average, const Group& winner);
  void expect_fresh(const std::map<Key, Group>& groups);
  Number make_number(std::size_t which, const Cell& cell, const std::vector<Reported>& chosen,
                     const std::vector<std::size_t>& all) const;
  void count_trials();
  void count_trial(TrialStatus status);

  Outcome selected(std::size_t trial) const {
    const FrameRow& row = frame_.rows[trial];
    if (selects_.axes().empty()) return outcome_of(row);
    return outcome_of(frame_, row, spec_.select->series, spec_.select->at, spec_.select->direction);
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
    std::vector<std::size_t> trials;
    for (const auto& [replicate, trial] : group.trials) {
      trials.push_back(trial);
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
    candidate.score = describe(scores, spec_.select ? spec_.scale_of(spec_.select->series.metric) : Scale::linear).mean;
    candidate.steps.assign(steps.begin(), steps.end());
    candidate.spikes = mean_summary(frame_, trials, "spikes");
    candidate.clipped_share = mean_summary(frame_, trials, "clipped_share");
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

Number Ablation::make_number(std::size_t which, const Cell& cell, const std::vector<Reported>& chosen,
                             const std::vector<std::size_t>& all) const {
  Number number;
  if (cell.chosen()) {
    number = number_of(frame_, spec_, which, chosen);
  } else {
    number.series = spec_.report[which];
    for (const std::size_t trial : all) {
      count(number.counts, outcome_of(frame_, frame_.rows[trial], number.series, {}, Direction::maximise).kind);
    }
    number.flags.push_back("none_complete");
  }
  number.flags.insert(number.flags.begin(), cell.flags.begin(), cell.flags.end());
  return number;
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
  cell.searched = static_cast<std::int64_t>(all.size());
  cell.trials += cell.searched;
  describe_cost(frame_, cell.chosen() ? of_choice : all, cell);
  for (std::size_t which = 0; which < spec_.report.size(); ++which) {
    if (cell.excluded.empty()) {
      cell.numbers.push_back(make_number(which, cell, chosen, all));
    } else {
      cell.numbers.emplace_back();
      cell.numbers.back().series = spec_.report[which];
      cell.numbers.back().flags = cell.flags;
    }
  }
  return cell;
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
  table_.trials = trial_lines(frame_, spec_, !selects_.axes().empty());
  add_varied(frame_, table_);
  group();
  table_.replicates = static_cast<std::int64_t>(replicates_.keys(true).size());
  const std::vector<Key> rows = rows_.keys(), columns = columns_.keys();
  for (const Key& row : rows) table_.rows.push_back(rows_.labels(row));
  for (const Key& column : columns) table_.columns.push_back(columns_.labels(column));
  for (const Key& row : rows) {
    for (const Key& column : columns) table_.cells.push_back(make_cell(row, column));
  }
  flag_cells(table_);
  compare_rows(table_);
  if (unnamed_ > 0)
    table_.notes.push_back(counted(unnamed_, "fresh trial") + " of the confirmation await the selection: `phasor sweep` runs them when it is complete");
  return std::move(table_);
}

}  // namespace

Table ablate(const Frame& frame, const TableSpec& spec) { return Ablation(frame, spec).run(); }

}  // namespace phasor::analysis
