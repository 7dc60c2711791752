#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/selection/metric.h"
#include "core/spec/json.h"

namespace phasor::analysis {

/// A metric that decides between equal scores.
struct Tie {
  Series series;
  bool slice_given = false;  // otherwise the selection's, or over all where it is not measured there
};

/// How the values of the select axes are chosen.
struct SelectRule {
  Series series;
  At at;
  Direction direction = Direction::maximise;
  std::vector<Tie> ties;  // in order; the lowest value decides last, always
};

/// The table section of a sweep:
///
///     "select":   {"split": "valid", "metric": "sequence_accuracy", "slice": 32, "at": "final",
///                  "ties": ["valid.loss", "lowest"]},
///     "report":   [{"split": "test", "metric": "sequence_accuracy", "slices": [32, 128]}],
///     "primary":  {"metric": "sequence_accuracy", "slice": 32},
///     "solved_at": 0.95,
///     "baseline": "RoPE",
///     "test": {"name": "sign_flip", "correct": "holm", "family": "rows x columns at primary"}
///
/// With a baseline every row is tested against it, whether or not `test` says so; there is one test so far.
///
/// `slice` is a length; -1, null, "all" or none means over all slices. `at` is final, best or mean_last_k, with the
/// number in its place (mean_last_3) or in a member `k`. A tie is `split.metric` (at the slice of the selection where
/// it is measured there, otherwise over all) or `split.metric@slice`. Reported numbers are those of the last evaluation.
struct TableSpec {
  std::optional<SelectRule> select;
  std::vector<Series> report;  // one for each slice, in the order of the file
  Series primary;              // one of `report`
  std::optional<double> solved_at;
  std::string baseline;  // label of a row, or empty
  bool as_paper = false;  // perplexities are averaged themselves, not on the logarithmic scale

  Scale scale_of(const std::string& metric) const { return as_paper ? Scale::linear : analysis::scale_of(metric); }
};

/// UserError naming the place when the section cannot be understood.
TableSpec read_table_spec(const Json& table);

}  // namespace phasor::analysis
