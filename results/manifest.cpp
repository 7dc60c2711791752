#include "results/manifest.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "results/files.h"
#include "results/other_format.h"

namespace phasor::results {
namespace {

/// 2 has a confirmation, which a program that knows only 1 would take for more seeds of the selection.
constexpr std::int64_t format_version = 2;
constexpr std::array<std::string_view, 5> roles = {"row", "column", "select", "replicate", "average"};

Json list_of(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(text);
  return list;
}

Json json_of(const ManifestAxis& axis) {
  Json json = Json::object();
  json["name"] = axis.name;
  json["role"] = axis.role;
  json["path"] = axis.path;
  json["labels"] = list_of(axis.labels);
  json["values"] = Json(axis.values);
  if (axis.fresh > 0) json["fresh"] = axis.fresh;
  return json;
}

Json json_of(const ManifestTrial& trial) {
  Json at = Json::array();
  for (const std::int64_t index : trial.at) at.push_back(index);
  Json json = Json::object();
  json["id"] = trial.id;
  json["at"] = std::move(at);
  json["excluded"] = trial.excluded;
  json["parameters"] = trial.parameters;
  return json;
}

/// Reads members of a manifest; each mistake is a UserError that names the file and the path in it.
class Source {
 public:
  explicit Source(std::string file) : file_(std::move(file)) {}

  [[noreturn]] void refuse(const std::string& path, const std::string& message) const {
    throw UserError(file_ + ": " + path + ": " + message);
  }
  const Json& member(const Json& object, const std::string& path, const char* name) const {
    const Json* found = object.is_object() ? object.find(name) : nullptr;
    if (found == nullptr) refuse(path, std::string("no \"") + name + "\", run the sweep again to write it anew");
    return *found;
  }
  std::string text(const Json& object, const std::string& path, const char* name) const {
    const Json& value = member(object, path, name);
    if (!value.is_string()) refuse(path + "." + name, std::string("found a ") + value.type_name() + ", expected a string");
    return value.as_string();
  }
  std::int64_t integer(const Json& value, const std::string& path) const {
    if (!value.is_integer()) refuse(path, std::string("found a ") + value.type_name() + ", expected a whole number");
    return value.as_integer();
  }
  const Json::Array& list(const Json& object, const std::string& path, const char* name) const {
    const Json& value = member(object, path, name);
    if (!value.is_array()) refuse(path + "." + name, std::string("found a ") + value.type_name() + ", expected a list");
    return value.as_array();
  }
  std::vector<std::string> texts(const Json& object, const std::string& path, const char* name) const {
    std::vector<std::string> found;
    for (const Json& value : list(object, path, name)) {
      if (!value.is_string()) refuse(path + "." + name, "expected a list of strings");
      found.push_back(value.as_string());
    }
    return found;
  }

 private:
  std::string file_;
};

ManifestAxis axis_of(const Source& source, const Json& json, const std::string& path) {
  ManifestAxis axis;
  axis.name = source.text(json, path, "name");
  axis.role = source.text(json, path, "role");
  axis.path = source.text(json, path, "path");
  axis.labels = source.texts(json, path, "labels");
  axis.values = source.list(json, path, "values");
  if (const Json* fresh = json.find("fresh")) axis.fresh = source.integer(*fresh, path + ".fresh");
  if (axis.fresh < 0 || (axis.fresh > 0 && axis.fresh >= static_cast<std::int64_t>(axis.labels.size()))) {
    source.refuse(path + ".fresh", "found " + std::to_string(axis.fresh) + ", expected fewer than there are labels");
  }
  if (std::find(roles.begin(), roles.end(), axis.role) == roles.end()) {
    source.refuse(path + ".role", "found \"" + axis.role + "\", expected row, column, select, replicate or average");
  }
  if (axis.labels.empty()) source.refuse(path + ".labels", "an axis without points");
  if (!axis.values.empty() && axis.values.size() != axis.labels.size()) {
    source.refuse(path + ".values", "found " + std::to_string(axis.values.size()) + " values for " +
                                        std::to_string(axis.labels.size()) + " labels");
  }
  return axis;
}

ManifestTrial trial_of(const Source& source, const Json& json, const std::string& path,
                       const std::vector<ManifestAxis>& axes) {
  ManifestTrial trial;
  trial.id = source.text(json, path, "id");
  trial.excluded = source.text(json, path, "excluded");
  trial.parameters = source.integer(source.member(json, path, "parameters"), path + ".parameters");
  for (const Json& index : source.list(json, path, "at")) trial.at.push_back(source.integer(index, path + ".at"));
  if (trial.id.empty() && trial.excluded.empty()) source.refuse(path, "neither an id nor a reason why it is excluded");
  if (trial.at.size() != axes.size()) {
    source.refuse(path + ".at", "found " + std::to_string(trial.at.size()) + " places, expected one on each of the " +
                                    std::to_string(axes.size()) + " axes");
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (trial.at[i] < 0 || trial.at[i] >= static_cast<std::int64_t>(axes[i].labels.size())) {
      source.refuse(path + ".at", "no point " + std::to_string(trial.at[i]) + " on axis " + axes[i].name);
    }
  }
  return trial;
}

}  // namespace

bool is_fresh(const std::vector<ManifestAxis>& axes, const std::vector<std::int64_t>& at) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (at[i] >= static_cast<std::int64_t>(axes[i].labels.size()) - axes[i].fresh) return true;
  }
  return false;
}

void write_manifest(const Manifest& manifest, const std::string& folder) {
  Json axes = Json::array();
  for (const ManifestAxis& axis : manifest.axes) axes.push_back(json_of(axis));
  Json trials = Json::array();
  for (const ManifestTrial& trial : manifest.trials) trials.push_back(json_of(trial));
  Json json = Json::object();
  const bool confirms = std::any_of(manifest.axes.begin(), manifest.axes.end(), [](const auto& a) { return a.fresh > 0; });
  json["format"] = confirms ? format_version : 1;
  json["name"] = manifest.name;
  json["note"] = manifest.note;
  json["axes"] = std::move(axes);
  json["varied"] = list_of(manifest.varied);
  json["table"] = manifest.table;
  if (!manifest.base.is_null()) json["base"] = manifest.base;
  if (confirms) json["awaiting"] = manifest.awaiting;
  json["trials"] = std::move(trials);
  write_whole(folder, "sweep.json", "sweep.json", json.pretty() + "\n");
}

namespace {

/// JSON that no version of this program wrote as a manifest, such as the sweep's own file: whole, and somebody's.
bool is_no_manifest(const Json& json) { return !json.is_object() || json.find("format") == nullptr; }

}  // namespace

void refuse_other_manifest(const std::string& folder) {
  const std::string file = folder + "/sweep.json";
  Json json;
  std::int64_t format = format_version;
  try {
    json = parse_json(read_file(file), file);
    const Source source(file);
    if (!is_no_manifest(json)) format = source.integer(source.member(json, "file", "format"), "format");
  } catch (const UserError&) {  // damaged, or none
    return;
  }
  if (is_no_manifest(json))
    throw UserError(file + ": found JSON without \"format\", expected the manifest that `phasor sweep` writes there, or nothing; " +
                    "it is not replaced, choose another folder with --out");
  if (format > format_version)
    throw UserError(file + ": format " + std::to_string(format) + ", this program writes format " + std::to_string(format_version) +
                    "; it is not replaced, use the phasor that wrote it or another folder");
}

Manifest read_manifest(const std::string& folder) {
  const std::string file = folder + "/sweep.json";
  if (std::error_code ignored; !std::filesystem::exists(file, ignored)) {
    const char* what = std::filesystem::is_directory(folder, ignored) ? "no such file" : std::filesystem::exists(folder, ignored) ? "that is no folder" : "no such folder";
    throw UserError(file + ": cannot be read, " + what +
                    "; expected the folder of a sweep, which `phasor sweep` makes (results/data/NAME unless --out names another)");
  }
  const Json json = parse_json(read_file(file), file);
  if (is_no_manifest(json))
    throw UserError(file + ": found JSON without \"format\", expected the manifest that `phasor sweep` writes in the folder of its results " +
                    "(results/data/NAME unless --out names another)");
  const Source source(file);
  if (const std::int64_t format = source.integer(source.member(json, "file", "format"), "format");
      format < 1 || format > format_version) {
    source.refuse("format", "found " + std::to_string(format) + ", this program reads formats 1 to " +
                                std::to_string(format_version) + ", use the phasor that wrote it or a newer one");
  }
  Manifest manifest;
  manifest.name = source.text(json, "file", "name");
  manifest.note = source.text(json, "file", "note");
  manifest.varied = source.texts(json, "file", "varied");
  manifest.table = source.member(json, "file", "table");
  if (const Json* base = json.find("base")) manifest.base = *base;
  if (const Json* awaiting = json.find("awaiting")) manifest.awaiting = source.integer(*awaiting, "awaiting");
  const Json::Array& axes = source.list(json, "file", "axes");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    manifest.axes.push_back(axis_of(source, axes[i], "axes[" + std::to_string(i) + "]"));
  }
  std::set<std::vector<std::int64_t>> places;
  const Json::Array& trials = source.list(json, "file", "trials");
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const std::string path = "trials[" + std::to_string(i) + "]";
    manifest.trials.push_back(trial_of(source, trials[i], path, manifest.axes));
    if (!places.insert(manifest.trials.back().at).second) source.refuse(path + ".at", "two trials at one place");
  }
  return manifest;
}

}  // namespace phasor::results
