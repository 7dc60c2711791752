#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "analysis/table/table.h"
#include "core/spec/json.h"

namespace phasor::analysis {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double infinity = std::numeric_limits<double>::infinity();

inline results::ManifestAxis points(const std::string& name, const std::string& role, std::vector<std::string> labels) {
  return {name, role, "", std::move(labels), {}};
}

inline results::ManifestAxis values(const std::string& name, const std::string& role, const std::string& path,
                                    const std::vector<double>& numbers) {
  results::ManifestAxis axis{name, role, path, {}, {}};
  for (const double number : numbers) {
    axis.labels.push_back(shortest(number));
    axis.values.emplace_back(number);
  }
  return axis;
}

/// A sweep and its folder in memory: every combination of the axes is expected; what `record` is not called for is
/// missing.
struct Sweep {
  results::Manifest manifest;
  results::Folder folder;

  explicit Sweep(std::vector<results::ManifestAxis> axes) {
    manifest.name = "test";
    manifest.axes = std::move(axes);
    manifest.table = parse_json(R"({
      "select": {"split": "valid", "metric": "accuracy", "slice": 32, "at": "final", "ties": ["valid.loss", "lowest"]},
      "report": [{"split": "test", "metric": "accuracy", "slices": [32]}], "solved_at": 0.95})", "table");
    std::vector<std::vector<std::int64_t>> places = {{}};
    for (const results::ManifestAxis& axis : manifest.axes) {
      if (!axis.path.empty()) manifest.varied.push_back(axis.path);
      std::vector<std::vector<std::int64_t>> longer;
      for (const auto& place : places) {
        for (std::size_t i = 0; i < axis.labels.size(); ++i) {
          longer.push_back(place);
          longer.back().push_back(static_cast<std::int64_t>(i));
        }
      }
      places = std::move(longer);
    }
    for (const auto& place : places) manifest.trials.push_back({id_of(place), place, "", 1000});
  }

  static std::string id_of(const std::vector<std::int64_t>& at) {
    std::string id = "t";
    for (const std::int64_t index : at) id += "-" + std::to_string(index);
    return id;
  }

  results::ManifestTrial& expected(const std::vector<std::int64_t>& at) {
    for (results::ManifestTrial& trial : manifest.trials) {
      if (trial.at == at) return trial;
    }
    throw std::runtime_error("no such place");
  }

  /// A trial that ended well, with one evaluation of valid and of test.
  results::TrialRecord& record(const std::vector<std::int64_t>& at, double valid, double test) {
    results::TrialRecord record;
    record.id = id_of(at);
    record.spec = Json::object();
    for (std::size_t i = 0; i < at.size(); ++i) {
      const results::ManifestAxis& axis = manifest.axes[i];
      if (!axis.path.empty()) record.spec.make_path(axis.path) = axis.values[static_cast<std::size_t>(at[i])];
    }
    record.evals = {{100, "valid", "accuracy", 32, valid, 10}, {100, "test", "accuracy", 32, test, 10}};
    record.summary = {{"step_ms", 4.0}};
    record.provenance = {{"commit", "abc"}, {"dirty", "0"}, {"processor", "P"}, {"device", "cpu"}};
    folder.records.push_back(std::move(record));
    return folder.records.back();
  }
  results::TrialRecord& diverged(const std::vector<std::int64_t>& at, const std::string& why = "loss nan at step 7") {
    results::TrialRecord& broken = record(at, 0.99, 0.99);  // its earlier numbers must not count
    broken.status = results::Status::diverged;
    broken.message = why;
    return broken;
  }
  results::TrialRecord& failed(const std::vector<std::int64_t>& at) {
    results::TrialRecord& broken = record(at, 0.99, 0.99);
    broken.status = results::Status::error;
    broken.message = "out of memory";
    return broken;
  }

  Table table(const TableOptions& options = {}) const { return make_table(manifest, folder, options); }
  std::string text(Format format, Form form) const { return render(table(), format, form); }
};

/// The fields of a CSV without quotes, as head to value for each line.
inline std::vector<std::map<std::string, std::string>> read_csv(const std::string& text) {
  const auto split = [](const std::string& line) {
    std::vector<std::string> fields(1);
    for (const char c : line) {
      if (c == ',') {
        fields.emplace_back();
      } else {
        fields.back() += c;
      }
    }
    return fields;
  };
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> heads = split(line);
  std::vector<std::map<std::string, std::string>> found;
  while (std::getline(lines, line)) {
    const std::vector<std::string> fields = split(line);
    found.emplace_back();
    for (std::size_t i = 0; i < std::min(heads.size(), fields.size()); ++i) found.back()[heads[i]] = fields[i];
  }
  return found;
}

/// What a UserError says, or "" when there is none.
template <class Work>
std::string refusal(Work work) {
  try {
    work();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace phasor::analysis
