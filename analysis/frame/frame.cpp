#include "analysis/frame/frame.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace phasor::analysis {
namespace {

void flatten_into(const Json& value, const std::string& path, std::vector<std::pair<std::string, Json>>& columns) {
  if (!value.is_object()) {
    columns.emplace_back(path, value);
    return;
  }
  for (const auto& [key, member] : value.as_object()) {
    flatten_into(member, path.empty() ? key : path + "." + key, columns);
  }
}

constexpr std::pair<TrialStatus, results::Status> of_records[] = {
    {TrialStatus::done, results::Status::done},       {TrialStatus::diverged, results::Status::diverged},
    {TrialStatus::error, results::Status::error},     {TrialStatus::oom, results::Status::oom},
    {TrialStatus::crashed, results::Status::crashed}, {TrialStatus::timeout, results::Status::timeout},
    {TrialStatus::lost, results::Status::lost}};

TrialStatus status_of(results::Status status) {
  for (const auto& [ours, of_record] : of_records) {
    if (of_record == status) return ours;
  }
  return TrialStatus::error;
}

void fill(FrameRow& row, const results::TrialRecord& record) {
  row.status = status_of(record.status);
  row.message = record.message;
  row.file = record.id + ".h5";
  row.columns = flatten_spec(record.spec);
  row.evals = record.evals;
  row.summary = record.summary;
  row.provenance = record.provenance;
  if (record.parameters.empty()) return;
  row.parameters = 0;
  for (const results::ParameterInfo& parameter : record.parameters) row.parameters += parameter.count;
}

std::string stem_of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  const std::string name = slash == std::string::npos ? file : file.substr(slash + 1);
  return name.ends_with(".h5") ? name.substr(0, name.size() - 3) : name;
}

}  // namespace

const char* to_text(TrialStatus status) {
  for (const auto& [ours, of_record] : of_records) {
    if (ours == status) return results::to_text(of_record);
  }
  return status == TrialStatus::missing ? "missing" : "excluded";
}

bool is_failure(TrialStatus status) {
  for (const auto& [ours, of_record] : of_records) {
    if (ours == status) return results::is_failure(of_record);
  }
  return false;
}

std::vector<std::pair<std::string, Json>> flatten_spec(const Json& spec) {
  std::vector<std::pair<std::string, Json>> columns;
  flatten_into(spec, "", columns);
  std::sort(columns.begin(), columns.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return columns;
}

Frame flatten(const results::Manifest& manifest, const results::Folder& folder) {
  Frame frame;
  frame.axes = manifest.axes;
  frame.varied = manifest.varied;
  frame.damaged = folder.damaged;
  std::map<std::string, const results::TrialRecord*> records;
  for (const results::TrialRecord& record : folder.records) records[record.id] = &record;
  std::map<std::string, std::string> damaged;
  for (const results::Damaged& file : folder.damaged) damaged[stem_of(file.file)] = file.reason;

  std::set<std::string> expected;
  frame.rows.reserve(manifest.trials.size());
  for (const results::ManifestTrial& trial : manifest.trials) {
    FrameRow row;
    row.id = trial.id;
    row.at = trial.at;
    row.parameters = trial.parameters;
    if (!trial.excluded.empty()) {
      row.status = TrialStatus::excluded;
      row.message = trial.excluded;
    } else if (const auto found = records.find(trial.id); found != records.end()) {
      fill(row, *found->second);
    } else if (const auto broken = damaged.find(trial.id); broken != damaged.end()) {
      row.message = "its file is not whole: " + broken->second;
    }
    if (trial.excluded.empty()) expected.insert(trial.id);
    frame.rows.push_back(std::move(row));
  }
  for (const auto& [id, record] : records) {
    if (!expected.contains(id)) frame.ignored.push_back(id + ".h5");
  }
  return frame;
}

std::string name_of(const std::vector<results::ManifestAxis>& axes, const std::vector<std::int64_t>& at) {
  std::string name;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (!name.empty()) name += " / ";
    if (!axes[i].path.empty()) name += axes[i].name + " ";
    name += axes[i].labels[static_cast<std::size_t>(at[i])];
  }
  return name;
}

const std::string& head_of(const results::ManifestAxis& axis) { return axis.path.empty() ? axis.name : axis.path; }

std::vector<std::string> selection_replicates(const std::vector<results::ManifestAxis>& axes) {
  for (const results::ManifestAxis& axis : axes) {
    if (axis.fresh > 0) return {axis.labels.begin(), axis.labels.end() - static_cast<std::ptrdiff_t>(axis.fresh)};
  }
  return {};
}

std::string provenance_of(const FrameRow& row, const std::string& name) {
  for (const auto& [known, value] : row.provenance) {
    if (known == name) return value;
  }
  return "";
}

}  // namespace phasor::analysis
