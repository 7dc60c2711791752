#include "sweeps/reader.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"

namespace phasor::sweeps {

std::string below(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

std::string element(const std::string& path, std::size_t index) { return path + "[" + std::to_string(index) + "]"; }

std::string found_text(const Json& value) {
  if (value.is_array()) return "found a list";
  if (value.is_object()) return "found an object";
  return "found " + value.canonical();
}

std::string label_text(const Json& value) { return value.is_string() ? value.as_string() : value.canonical(); }

bool Reader::experiment_path(const std::string& path, const std::string& place) {
  try {
    Json().make_path(path);
  } catch (const UserError& error) {
    problem(place, error.what());
    return false;
  }
  if (path != "note" && path != "$schema" && path != "extends" && path != "run" && !path.starts_with("run.")) return true;
  problem(place, "found " + path + ", which is outside a trial's identity: every value would be the same trial; expected a path " +
                     "that changes results");
  return false;
}

bool Reader::object(const Json& value, const std::string& path) {
  if (value.is_object()) return true;
  problem(path, found_text(value) + ", expected an object in { }");
  return false;
}

void Reader::keys(const Json& object, const std::string& path, const std::vector<std::string>& known,
                  const LaterKeys& later) {
  for (const auto& [key, value] : object.as_object()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const auto planned = std::find_if(later.begin(), later.end(), [&k = key](const auto& l) { return l.first == k; });
    if (planned != later.end()) {
      document_.key_problem(below(path, key), "not supported yet: " + planned->second);
      continue;
    }
    const std::optional<std::string> meant = nearest(key, known);
    document_.key_problem(below(path, key), "unknown key " + json_quoted(key) +
                                                (meant ? ", did you mean " + json_quoted(*meant) + "?"
                                                       : ", expected " + quoted_list(known)));
  }
}

const Json* Reader::member(const Json& object, const std::string& path, const char* key, bool required) {
  const Json* value = object.find(key);
  if (value == nullptr && required) problem(path, "missing " + json_quoted(key));
  return value;
}

std::optional<std::string> Reader::text(const Json& object, const std::string& path, const char* key, bool required) {
  const Json* value = member(object, path, key, required);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->as_string();
  problem(below(path, key), found_text(*value) + ", expected a text in double quotes");
  return std::nullopt;
}

std::optional<std::string> Reader::choice(const Json& object, const std::string& path, const char* key,
                                          const std::vector<std::string>& choices, bool required) {
  const std::optional<std::string> value = text(object, path, key, required);
  if (!value || std::find(choices.begin(), choices.end(), *value) != choices.end()) return value;
  const std::optional<std::string> meant = nearest(*value, choices);
  problem(below(path, key), "found " + json_quoted(*value) + ", expected " + quoted_list(choices) +
                                (meant ? ", did you mean " + json_quoted(*meant) + "?" : ""));
  return std::nullopt;
}

const Json::Array* Reader::list(const Json& object, const std::string& path, const char* key, bool required) {
  const Json* value = member(object, path, key, required);
  if (value == nullptr) return nullptr;
  if (value->is_array()) return &value->as_array();
  problem(below(path, key), found_text(*value) + ", expected a list in [ ]");
  return nullptr;
}

}  // namespace phasor::sweeps
