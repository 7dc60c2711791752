#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/spec/problems.h"
#include "core/spec/scanner.h"
#include "core/spec/strict_json.h"

namespace phasor {

namespace {

bool nested(const Field& field) { return field.kind == FieldKind::object || field.kind == FieldKind::named; }

void add_differences(const FieldList& fields, const std::string& section, std::vector<Difference>& all) {
  for (const Field& field : fields.all()) {
    const std::string path = section.empty() ? field.name : section + "." + field.name;
    if (field.kind == FieldKind::named) {
      const std::string now = field.selected();
      if (!field.initial_name.empty() && now != field.initial_name) {
        all.push_back({path + ".name", Json(now), Json(field.initial_name)});
      }
    }
    if (nested(field)) {
      add_differences(field.bound(), path, all);
    } else if (Json value = field.get(); value != *field.initial) {
      all.push_back({path, std::move(value), *field.initial});
    }
  }
}

}  // namespace

Json write_fields(const FieldList& fields, Names names) {
  Json result = Json::object();
  for (const Field& field : fields.all()) {
    Json& place = result[names == Names::present || field.former.empty() ? field.name : field.former];
    if (!nested(field)) {
      place = field.get();
      continue;
    }
    Json members = write_fields(field.bound(), names);
    if (field.kind == FieldKind::named) {
      members.as_object().insert(members.as_object().begin(), {"name", Json(field.selected())});
    }
    place = std::move(members);
  }
  return result;
}

std::vector<Difference> differences(const FieldList& fields) {
  std::vector<Difference> all;
  add_differences(fields, "", all);
  return all;
}

std::pair<std::string, Json> parse_setting(const std::string& setting) {
  const std::string place = "--set " + setting + ": ";
  if (find_bad_utf8(setting)) throw UserError("--set: found bytes that are not UTF-8, expected path=value in UTF-8");
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos)
    throw UserError(place + "found no \"=\", expected path=value, such as optimizer.lr=1e-3");
  const std::string path = setting.substr(0, equals), text = setting.substr(equals + 1);
  try {
    Json().make_path(path);
  } catch (const UserError& error) {
    throw UserError("--set " + std::string(error.what()));
  }
  const Scan scan = scan_json(text);
  StrictError error;
  if (scan.problems.empty()) {
    if (std::optional<Json> value = strict_json(text, error)) return {path, std::move(*value)};
  }
  // What begins like JSON was meant as JSON, and a number that does not fit is no text.
  const bool meant = !text.empty() && std::string_view("{[\"").find(text.front()) != std::string_view::npos;
  if (meant || is_json_number(text)) {
    throw UserError(place + (scan.problems.empty() ? error.message : scan.problems.front().message));
  }
  return {path, Json(text)};
}

void merge(Json& base, const Json& patch) {
  if (!base.is_object() || !patch.is_object()) {
    base = patch;
    return;
  }
  const Json* name = patch.find("name");
  const Json* old_name = base.find("name");
  if (name && (!old_name || *old_name != *name)) {
    base = patch;
    return;
  }
  for (const auto& [key, value] : patch.as_object()) merge(base[key], value);
}

}  // namespace phasor
