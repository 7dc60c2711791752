#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/spec/json.h"
#include "results/costs.h"
#include "results/manifest.h"
#include "results/record.h"
#include "results/store.h"

namespace phasor::analysis {

/// Of a record (results/record.h), or of a cell without one.
enum class TrialStatus { done, diverged, error, oom, crashed, timeout, lost, missing, excluded };
const char* to_text(TrialStatus status);
bool is_failure(TrialStatus status);  // error, oom, crashed, timeout, lost

/// One expected trial, found or not.
struct FrameRow {
  std::string id;
  std::vector<std::int64_t> at;  // index of the point on each axis
  TrialStatus status = TrialStatus::missing;
  std::string message;           // why it is not done: of the record, of the damaged file, of the exclusion
  std::string file;              // "<id>.h5" when the trial's file was read
  /// The spec, flattened: dotted path to value, sorted by path. Lists stay whole.
  std::vector<std::pair<std::string, Json>> columns;
  std::vector<results::EvalPoint> evals;
  std::vector<std::pair<std::string, double>> summary;
  std::vector<std::pair<std::string, std::string>> provenance;
  std::int64_t parameters = 0;
  const results::MeasuredCost* cost = nullptr;  // what was measured of its shape; null: nothing

  bool has_record() const { return !file.empty(); }
};

/// What a sweep expects joined with what its folder holds. One row for each expected trial, in the order of the manifest,
/// whatever the order of the records.
struct Frame {
  std::vector<results::ManifestAxis> axes;
  std::vector<std::string> varied;
  std::vector<FrameRow> rows;
  std::vector<std::string> ignored;        // files of trials that the sweep does not expect, sorted
  std::vector<results::Damaged> damaged;   // files that are not whole
};

Frame flatten(const results::Manifest& manifest, const results::Folder& folder);

/// Dotted path to value for every leaf of a spec, sorted by path.
std::vector<std::pair<std::string, Json>> flatten_spec(const Json& spec);

/// "Selective / S2 / lr 0.01 / seed 2": the labels of a trial's points, with the axis's name where the label alone does
/// not say what it is (axes of values).
std::string name_of(const std::vector<results::ManifestAxis>& axes, const std::vector<std::int64_t>& at);

/// The path of an axis of values, otherwise its name: its column head wherever a chosen or trial's value stands.
const std::string& head_of(const results::ManifestAxis& axis);

/// Labels of the replicates that a selection is made on, of the axis that has fresh ones beside them.
std::vector<std::string> selection_replicates(const std::vector<results::ManifestAxis>& axes);

/// A fact of a trial by name, or empty.
std::string provenance_of(const FrameRow& row, const std::string& name);

}  // namespace phasor::analysis
