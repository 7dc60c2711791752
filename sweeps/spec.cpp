#include "sweeps/spec.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"
#include "sweeps/random_axis.h"
#include "sweeps/reader.h"
#include "sweeps/table_section.h"

namespace phasor::sweeps {

namespace {

const std::vector<std::string> roles = {"row", "column", "select", "replicate", "average"};

/// Labels and names stand in folders, tables and CSV heads: one line, not empty.
std::optional<std::string> line(Reader& reader, const Json& object, const std::string& path, const char* key) {
  std::optional<std::string> text = reader.text(object, path, key, true);
  if (!text) return text;
  const bool control = std::any_of(text->begin(), text->end(), [](char c) { return c >= 0 && c < ' '; });
  if (!text->empty() && !control) return text;
  reader.problem(below(path, key), "found " + json_quoted(*text) + ", expected a text of one line");
  return std::nullopt;
}

/// Whether a dotted path can be set at all; experiments decide whether it exists.
bool good_path(Reader& reader, const std::string& path, const std::string& place) {
  try {
    Json().make_path(path);
    return true;
  } catch (const UserError& error) {
    reader.problem(place, error.what());
    return false;
  }
}

std::optional<Point> read_point(Reader& reader, const Json& value, const std::string& place) {
  if (!reader.object(value, place)) return std::nullopt;
  reader.keys(value, place, {"label", "set"});
  Point point;
  point.place = place;
  if (const auto label = line(reader, value, place, "label")) point.label = *label;
  const Json* set = reader.member(value, place, "set", true);
  const std::string set_place = below(place, "set");
  if (set == nullptr || !reader.object(*set, set_place)) return point;
  for (const auto& [path, patch] : set->as_object()) {
    std::string where = below(set_place, path);
    if (good_path(reader, path, where) && !reader.document().broken(where)) {
      point.settings.push_back({path, patch, std::move(where)});
    }
  }
  return point;
}

void read_values(Reader& reader, const Json& json, Axis& axis) {
  const Json::Array* values = reader.list(json, axis.place, "values", false);
  const std::optional<std::string> path = reader.text(json, axis.place, "path", true);
  if (path && reader.experiment_path(*path, below(axis.place, "path"))) axis.path = *path;
  if (values == nullptr || axis.path.empty()) return;
  for (std::size_t i = 0; i < values->size(); ++i) {
    const Json& value = (*values)[i];
    const std::string place = element(below(axis.place, "values"), i);
    if (reader.document().broken(place)) continue;
    axis.points.push_back({label_text(value), {{axis.path, value, place}}, place, value});
  }
}

void check_labels(Reader& reader, const Axis& axis) {
  std::set<std::string> seen;
  for (const Point& point : axis.points) {
    if (point.label.empty() || seen.insert(point.label).second) continue;
    const bool named = axis.path.empty();
    reader.problem(named ? below(point.place, "label") : point.place,
                   (named ? "found the label " + json_quoted(point.label) : "found the value " + point.label) +
                       " twice on this axis, expected each once");
  }
}

Axis read_axis(Reader& reader, const Json& json, const std::string& place) {
  Axis axis;
  axis.place = place;
  reader.keys(json, place, {"name", "role", "points", "path", "values", "random"});
  if (const auto name = line(reader, json, place, "name")) axis.name = *name;
  if (axis.name == "reason") {
    reader.problem(below(place, "name"),
                   "found \"reason\", which exclude rules use for something else; rename the axis");
  }
  if (const auto role = reader.choice(json, place, "role", roles, true)) axis.role = *role;
  std::vector<std::string> given;
  for (const char* kind : {"points", "values", "random"}) {
    if (json.find(kind) != nullptr) given.emplace_back(kind);
  }
  if (given.size() != 1) {
    reader.problem(place, given.empty() ? "expected \"points\", \"path\" and \"values\", or \"random\""
                                        : "found both \"" + given[0] + "\" and \"" + given[1] + "\", expected one of them");
    return axis;
  }
  const bool values = given[0] == "values";
  if (!values && json.find("path") != nullptr) {
    reader.document().key_problem(below(place, "path"),
                                  "found with \"" + given[0] + "\", expected only with \"values\"; remove it");
  }
  if (given[0] == "random") {
    read_random(reader, json, axis);
    return axis;
  }
  if (values) {
    read_values(reader, json, axis);
  } else {
    if (const Json::Array* list = reader.list(json, place, "points", true)) {
      for (std::size_t i = 0; i < list->size(); ++i) {
        if (auto point = read_point(reader, (*list)[i], element(below(place, "points"), i))) {
          axis.points.push_back(std::move(*point));
        }
      }
    }
  }
  const Json* list = json.find(values ? "values" : "points");
  if (list->is_array() && list->as_array().empty()) {
    reader.problem(below(place, values ? "values" : "points"), "found an empty list, expected at least one point");
  }
  check_labels(reader, axis);
  return axis;
}

/// Two axes that set one path: the later would undo the earlier in silence.
void check_overlap(Reader& reader, const std::vector<Axis>& axes) {
  for (std::size_t later = 1; later < axes.size(); ++later) {
    std::set<std::string> told;
    for (const Point& point : axes[later].points) {
      for (const Setting& setting : point.settings) {
        for (std::size_t earlier = 0; earlier < later; ++earlier) {
          const auto sets = [&](const Point& p) {
            return std::any_of(p.settings.begin(), p.settings.end(),
                               [&](const Setting& s) { return s.path == setting.path; });
          };
          if (std::none_of(axes[earlier].points.begin(), axes[earlier].points.end(), sets)) continue;
          if (!told.insert(setting.path).second) continue;
          reader.problem(setting.place, setting.path + " is set by the axis " + json_quoted(axes[earlier].name) +
                                            " too, expected each path on one axis");
        }
      }
    }
  }
}

void read_axes(Reader& reader, const Json& root, SweepSpec& spec) {
  const Json::Array* list = reader.list(root, "", "axes", true);
  if (list == nullptr) return;
  if (list->empty()) reader.problem("axes", "found an empty list, expected at least one axis");
  std::set<std::string> names;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string place = element("axes", i);
    if (!reader.object((*list)[i], place)) continue;
    Axis axis = read_axis(reader, (*list)[i], place);
    if (!axis.name.empty() && !names.insert(axis.name).second) {
      reader.problem(below(place, "name"), "found the name " + json_quoted(axis.name) + " twice, expected each once");
    }
    if (!axis.points.empty()) spec.axes.push_back(std::move(axis));
  }
  check_overlap(reader, spec.axes);
}

/// One condition of a rule, as (axis, point).
std::optional<std::pair<std::size_t, std::size_t>> read_condition(Reader& reader, const std::vector<Axis>& axes,
                                                                  const std::string& name, const Json& value,
                                                                  const std::string& place) {
  std::vector<std::string> names = {"reason"}, labels;
  for (const Axis& axis : axes) names.push_back(axis.name);
  const auto axis = std::find_if(axes.begin(), axes.end(), [&](const Axis& a) { return a.name == name; });
  if (axis == axes.end()) {
    const std::optional<std::string> meant = nearest(name, names);
    reader.document().key_problem(
        place, "no axis is called " + json_quoted(name) +
                   (meant ? ", did you mean " + json_quoted(*meant) + "?" : ", expected " + quoted_list(names)));
    return std::nullopt;
  }
  for (const Point& point : axis->points) labels.push_back(point.label);
  const auto label = std::find(labels.begin(), labels.end(), label_text(value));
  if (label == labels.end()) {
    reader.problem(place, found_text(value) + ", expected a point of this axis: " + quoted_list(labels));
    return std::nullopt;
  }
  return std::pair(static_cast<std::size_t>(axis - axes.begin()), static_cast<std::size_t>(label - labels.begin()));
}

void read_exclude(Reader& reader, const Json& root, SweepSpec& spec) {
  const Json::Array* list = reader.list(root, "", "exclude", false);
  if (list == nullptr) return;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string place = element("exclude", i);
    const Json& rule = (*list)[i];
    if (!reader.object(rule, place)) continue;
    Exclusion exclusion;
    bool whole = true;
    if (const auto reason = reader.text(rule, place, "reason", false)) exclusion.reason = *reason;
    for (const auto& [name, value] : rule.as_object()) {
      if (name == "reason") continue;
      const auto condition = read_condition(reader, spec.axes, name, value, below(place, name));
      if (condition) exclusion.conditions.push_back(*condition);
      whole = whole && condition.has_value();
    }
    if (whole && exclusion.conditions.empty()) {
      reader.problem(place, "found no condition, expected one such as {\"variant\": \"RoPE\", \"task\": \"S3\"}");
    }
    if (exclusion.reason.empty()) exclusion.reason = "excluded in the sweep file";
    // A rule that is only half understood would take out too much.
    if (whole && !exclusion.conditions.empty()) spec.exclude.push_back(std::move(exclusion));
  }
}

/// Fresh values of a replicate axis for what is chosen. They become its last points, which the selection does not visit: a
/// value that the choice was made on would be flattered by it.
void read_confirm(Reader& reader, const Json& root, SweepSpec& spec) {
  const Json* confirm = root.find("confirm");
  if (confirm == nullptr || !reader.object(*confirm, "confirm")) return;
  const auto chosen = [](const Axis& axis) { return axis.role == "select"; };
  if (std::none_of(spec.axes.begin(), spec.axes.end(), chosen)) {
    reader.problem("confirm", "no axis has the role \"select\": nothing is chosen that could be confirmed; remove it");
  }
  if (confirm->as_object().size() != 1) {
    reader.problem("confirm", "expected one replicate axis with fresh values, such as {\"seed\": [100, 101, 102]}");
    return;
  }
  const std::string& name = confirm->as_object().front().first;
  const std::string place = below("confirm", name);
  std::vector<std::string> names;
  for (const Axis& axis : spec.axes) {
    if (axis.role == "replicate" && !axis.path.empty()) names.push_back(axis.name);
  }
  const auto axis = std::find_if(spec.axes.begin(), spec.axes.end(), [&](const Axis& a) { return a.name == name; });
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    reader.document().key_problem(place, "no replicate axis of values is called " + json_quoted(name) + ", expected " +
                                             (names.empty() ? "one; there is none" : quoted_list(names)));
    return;
  }
  const Json::Array* values = reader.list(*confirm, "confirm", name.c_str(), true);
  if (values == nullptr) return;
  if (values->empty()) reader.problem(place, "found an empty list, expected at least one value");
  const std::size_t visited = axis->points.size();
  for (std::size_t i = 0; i < values->size(); ++i) {
    const Json& value = (*values)[i];
    const std::string where = element(place, i);
    if (reader.document().broken(where)) continue;
    const auto twin = std::find_if(axis->points.begin(), axis->points.end(), [&](const Point& p) { return p.value == value; });
    if (twin == axis->points.end()) {
      axis->points.push_back({label_text(value), {{axis->path, value, where}}, where, value});
      continue;
    }
    const bool selects = static_cast<std::size_t>(twin - axis->points.begin()) < visited;
    reader.problem(where, found_text(value) + (selects ? ", on which the choice is made: what it reports would be biased upward; "
                                                         "expected a value that the axis " + json_quoted(name) + " does not have"
                                                       : " twice, expected each once"));
  }
  axis->fresh = axis->points.size() - visited;
}

void read_limits(Reader& reader, const Json& root, Limits& limits) {
  const Json* section = root.find("limits");
  if (section == nullptr || !reader.object(*section, "limits")) return;
  reader.keys(*section, "limits", {"seconds", "memory_mb"});
  for (auto [key, target] : {std::pair("seconds", &limits.seconds), std::pair("memory_mb", &limits.memory_mb)}) {
    const Json* value = section->find(key);
    if (value == nullptr) continue;
    if (value->is_integer() && value->as_integer() >= 1) {
      *target = value->as_integer();
    } else {
      reader.problem(below("limits", key), found_text(*value) + ", expected a whole number of at least 1; leave it out for no limit");
    }
  }
}

void check_name(Reader& reader, const std::string& name) {
  const bool good = !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
  if (!good) {
    reader.problem("name",
                   "found " + json_quoted(name) + ", expected letters, digits, '_', '-' and '.': it names a folder");
  }
}

}  // namespace

SweepSpec read_sweep_spec(Document& document) {
  SweepSpec spec;
  Reader reader(document);
  const Json& root = document.value();
  if (!reader.object(root, "")) return spec;
  reader.keys(root, "", {"$schema", "extends", "name", "note", "base", "axes", "exclude", "confirm", "limits", "table"});
  reader.text(root, "", "$schema", false);
  if (const auto name = reader.text(root, "", "name", true)) {
    check_name(reader, *name);
    spec.name = *name;
  }
  if (const auto note = reader.text(root, "", "note", false)) spec.note = *note;
  if (const auto base = reader.text(root, "", "base", true)) {
    spec.base = (std::filesystem::path(document.file_of("base")).parent_path() / *base).lexically_normal().string();
  }
  read_axes(reader, root, spec);
  read_exclude(reader, root, spec);
  read_confirm(reader, root, spec);
  read_limits(reader, root, spec.limits);
  spec.table = read_table_section(document, spec.axes);
  return spec;
}

}  // namespace phasor::sweeps
