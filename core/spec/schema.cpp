#include "core/spec/schema.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace phasor {

namespace {

Json list_of(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(text);
  return list;
}

Json object_of(Json::Object members) { return Json(std::move(members)); }

void add_range(const Range& range, Json& schema) {
  if (std::isfinite(range.low)) schema[range.low_open ? "exclusiveMinimum" : "minimum"] = range.low;
  if (std::isfinite(range.high)) schema[range.high_open ? "exclusiveMaximum" : "maximum"] = range.high;
}

Json number_schema(const char* type, const Range& range, bool optional) {
  Json schema = object_of({{"type", optional ? Json(Json::Array{type, "null"}) : Json(type)}});
  add_range(range, schema);
  return schema;
}

Json leaf_schema(const Field& field) {
  switch (field.kind) {
    case FieldKind::boolean:
      return object_of({{"type", field.optional ? Json(Json::Array{"boolean", "null"}) : Json("boolean")}});
    case FieldKind::integer:
      return number_schema("integer", field.range, field.optional);
    case FieldKind::number:
      return number_schema("number", field.range, field.optional);
    case FieldKind::choice:
      return object_of({{"enum", list_of(field.choices)}});
    case FieldKind::integers:
      return object_of({{"type", "array"}, {"items", number_schema("integer", field.range, false)}});
    case FieldKind::numbers:
      return object_of({{"type", "array"}, {"items", number_schema("number", field.range, false)}});
    default:
      return object_of({{"type", "string"}});
  }
}

Json field_schema(const Field& field);

Json properties_of(const FieldList& fields) {
  Json properties = Json::object();
  for (const Field& field : fields.all()) properties[field.name] = field_schema(field);
  return properties;
}

/// "name" chooses the branch; where it may be left out, its absence chooses that of the default.
Json named_schema(const Field& field) {
  Json name = object_of({{"enum", list_of(field.choices)}});
  if (!field.initial_name.empty()) name["default"] = field.initial_name;
  Json schema = object_of({{"type", "object"}, {"properties", object_of({{"name", std::move(name)}})}});
  if (field.initial_name.empty()) schema["required"] = Json::Array{"name"};
  Json branches = Json::array();
  for (const std::string& choice : field.choices) {
    Json chosen = object_of({{"properties", object_of({{"name", object_of({{"const", choice}})}})}});
    if (choice != field.initial_name) chosen["required"] = Json::Array{"name"};
    Json properties = object_of({{"name", true}});
    Json fields = properties_of(field.preview(choice));
    for (auto& [key, value] : fields.as_object()) properties[key] = std::move(value);
    Json then = object_of({{"properties", std::move(properties)}, {"additionalProperties", false}});
    branches.push_back(object_of({{"if", std::move(chosen)}, {"then", std::move(then)}}));
  }
  schema["allOf"] = std::move(branches);
  return schema;
}

Json field_schema(const Field& field) {
  Json schema;
  if (field.kind == FieldKind::object) {
    schema = object_schema(*field.members);
  } else if (field.kind == FieldKind::named) {
    schema = named_schema(field);
  } else {
    schema = leaf_schema(field);
    schema["default"] = *field.initial;
  }
  if (!field.help.empty()) schema["description"] = field.help;
  return schema;
}

/// Schemas that several alternatives have at one path, each once.
using Found = std::map<std::string, std::vector<Json>>;

void add_once(std::vector<Json>& all, Json schema) {
  if (std::find(all.begin(), all.end(), schema) == all.end()) all.push_back(std::move(schema));
}

void collect(const FieldList& fields, const std::string& section, Found& found) {
  for (const Field& field : fields.all()) {
    const std::string path = section.empty() ? field.name : section + "." + field.name;
    if (field.kind == FieldKind::object) {
      add_once(found[path], object_of({{"type", "object"}}));
      collect(*field.members, path, found);
    } else if (field.kind == FieldKind::named) {
      const Json name = object_of({{"enum", list_of(field.choices)}});
      add_once(found[path], object_of({{"type", "object"}, {"properties", object_of({{"name", name}})}}));
      add_once(found[path + ".name"], name);
      for (const std::string& choice : field.choices) collect(field.preview(choice), path, found);
    } else {
      add_once(found[path], leaf_schema(field));
    }
  }
}

}  // namespace

Json object_schema(const FieldList& fields) {
  return object_of({{"type", "object"}, {"properties", properties_of(fields)}, {"additionalProperties", false}});
}

std::vector<PathSchema> path_schemas(const FieldList& fields) {
  Found found;
  collect(fields, "", found);
  std::vector<PathSchema> all;
  for (auto& [path, schemas] : found) {
    all.push_back({path, schemas.size() == 1 ? schemas.front() : object_of({{"anyOf", Json(schemas)}})});
  }
  return all;
}

}  // namespace phasor
