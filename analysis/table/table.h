#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/frame/frame.h"
#include "analysis/selection/selection.h"
#include "analysis/selection/statistics.h"
#include "analysis/table/table_spec.h"
#include "results/costs.h"
#include "results/manifest.h"
#include "results/store.h"

namespace phasor::analysis {

/// One value of the select axes in one cell.
struct Candidate {
  std::vector<std::string> labels;  // one for each select axis
  Counts counts;                    // of its replicates, on the selection metric
  std::optional<double> score;      // mean over the finite ones; not eligible unless all are
  std::vector<std::int64_t> steps;  // after which the scores were measured, distinct, rising
  std::optional<double> spikes, clipped_share;  // means over its trials
  bool chosen = false;
};

/// The choice for one point of the average axes; a cell without such axes has one.
struct Setting {
  std::vector<std::string> labels;  // one for each average axis
  std::vector<Candidate> candidates;
  Choice choice;
  std::string excluded;  // the reason when the whole setting is, else empty
};

/// Of a row from its baseline, over the seeds that both have. Perplexities are compared by their logarithms: a difference of loss.
struct Difference {
  std::string baseline;  // label of its row
  std::int64_t pairs = 0;
  double mean = 0.0;
  std::optional<Interval> interval;  // paired.h; none for one pair
  double p = 1.0;                    // sign-flip, two-sided
  std::optional<double> p_holm;      // corrected; only within the family
};

/// The comparisons whose p are corrected together: all rows with a baseline, in all columns, at the primary number.
struct Family {
  std::int64_t comparisons = 0;
  std::int64_t least_pairs = 0, most_pairs = 0;  // of seeds
  double smallest_p = 1.0, smallest_holm = 1.0;  // that so many seeds can give, before and after the correction
};
constexpr double significance = 0.05;
constexpr const char* family_name = "rows x columns at primary";

/// One reported number of a cell: a series over the replicates of what was chosen, the fresh ones where the sweep confirms.
///
/// The mean is over all expected replicates or it is not given: a mean of survivors is not a result. When nothing could
/// be chosen, the counts are those of every trial of the cell.
struct Number {
  Series series;
  Counts counts;
  std::vector<std::pair<std::vector<std::int64_t>, double>> values;  // finite ones, by the point on each replicate axis
  Statistics statistics;                   // empty unless counts.whole()
  std::optional<std::int64_t> solved;      // replicates at least as good as solved_at, for the primary metric
  std::optional<Interval> solved_share;    // 95 %, Wilson
  std::optional<Difference> difference;    // from the baseline, where both are whole
  bool best = false;                       // the best of its column, and better than its baseline beyond chance
  std::vector<std::string> flags;

  bool differs() const { return difference && difference->p_holm && *difference->p_holm < significance; }
};

/// What `phasor bench --decode` measured of what was chosen: means over its settings, absent unless all of them were measured.
struct CellCosts {
  std::optional<double> training_ms, prefill_ms, decode_ms, decode_low_ms, decode_high_ms;
  std::optional<double> state_bytes, training_bytes, decoding_bytes;
  std::string sizes;    // "16 x 32 tokens, one token of 16 rows after 32"
  std::string problem;  // why something is absent, where that is known
};

struct Cell {
  std::vector<Setting> settings;
  std::vector<Number> numbers;  // one for each reported series, in order
  std::vector<std::string> flags;  // of the choice and the row, shared by the numbers
  std::string excluded;            // the reason when the whole cell is, else empty
  std::int64_t parameters = 0;     // of what was chosen; the most, where settings differ
  std::optional<double> step_ms, spikes, clipped_share, chance;  // means over what was chosen
  CellCosts costs;
  std::int64_t trials = 0;         // expected, over all candidates
  std::int64_t searched = 0;       // of these to make the choice

  bool chosen() const;  // in every setting that is not excluded
  std::int64_t tied() const;  // the most candidates tied in a setting
};

/// One expected trial, as it ended.
struct TrialLine {
  std::string id, name, message, file;
  std::vector<std::int64_t> at;
  TrialStatus status = TrialStatus::missing;
  std::vector<std::optional<double>> reported;  // one for each reported series
  std::optional<Reading> selected;              // the number it was judged by
  bool chosen = false;                          // its candidate was
  bool fresh = false;                           // of the confirmation, on a seed that chose nothing
  bool expected = true;                         // false: fresh, but of a value that is not the chosen one (any more)
  std::optional<double> steps_to_solve, step_ms, spikes, clipped_share;
  std::int64_t parameters = 0;
  std::vector<std::string> varied;              // values of Table::varied
};

/// An ablation table: everything any of its forms shows.
struct Table {
  std::string name;
  TableSpec spec;
  std::vector<results::ManifestAxis> axes;
  std::vector<std::vector<std::string>> rows, columns;  // labels, one for each axis of the role
  std::vector<Cell> cells;                              // rows x columns, a row after the other
  std::vector<TrialLine> trials;                        // in the order of the manifest
  /// What the selection chose: a point on each axis, -1 on those of replicates; a place for each setting of a cell.
  std::vector<std::vector<std::int64_t>> chosen;
  bool confirms = false;              // the reported numbers are those of fresh replicates alone
  std::optional<Family> family;       // with a baseline
  std::vector<std::string> varied;    // paths that differ between trials and are not the path of an axis
  std::int64_t replicates = 0;        // reported in a cell, when nothing is missing
  std::int64_t expected = 0, done = 0, diverged = 0, failed = 0, missing = 0, excluded = 0;
  std::vector<std::string> build;     // what check_mixtures had to say
  std::vector<std::string> data;      // what overlap_notes had to say
  std::vector<std::string> costs;     // what must be said of measured costs; empty: there are none
  std::vector<std::string> notes;     // what else a reader should know
  std::vector<std::string> ignored;   // files of trials that are not in the sweep
  std::vector<results::Damaged> damaged;

  const Cell& cell(std::size_t row, std::size_t column) const { return cells[row * columns.size() + column]; }
  /// Every expected trial has ended by itself: none is missing, none failed. A diverged trial is a result.
  bool complete() const { return missing == 0 && failed == 0; }
};

/// The place of the primary number among the numbers of a cell.
std::size_t primary_of(const Table& table);

struct TableOptions {
  bool allow_mixed = false;  // put trials of different builds, processors, devices or revisions side by side
  bool as_paper = false;     // average perplexities themselves, as papers do, not their logarithms
  const results::Costs* costs = nullptr;  // of the sweep's folder, where some were measured
};

/// The straight way: flatten, check_mixtures, ablate.
Table make_table(const results::Manifest& manifest, const results::Folder& folder, const TableOptions& options = {});

/// Trials that are missing, failed or diverged, one line each: "missing  NoPE / S2 / lr 0.01 / seed 2: message".
std::vector<std::string> unfinished(const Table& table);

enum class Format { csv, markdown, latex, json, terminal };
/// longer = one line a cell and reported number; wide = one line a row, primary number; trials = one line an expected
/// trial; candidates = one line a cell and value of the select axes.
enum class Form { longer, wide, trials, candidates };

/// UserError listing the names when `text` is none.
Format read_format(const std::string& text);  // csv, markdown, latex, json, terminal
Form read_form(const std::string& text);      // long, wide, trials, candidates

/// The text of a table, with a final newline. The terminal has one form, the wide one.
std::string render(const Table& table, Format format, Form form);

}  // namespace phasor::analysis
