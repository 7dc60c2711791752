#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/spec/problems.h"
#include "core/spec/scanner.h"
#include "core/spec/suggest.h"

namespace phasor {

namespace {

constexpr double two_to_53 = 9007199254740992.0;

/// What was found, for a message: `"1e-3" (text)`, `3.5`, `a list`.
std::string found(const Json& value) {
  constexpr std::size_t longest = 60;
  if (value.is_array()) return "found a list";
  if (value.is_object()) return "found an object";
  const std::string text = value.is_number() ? value.pretty() : value.canonical();
  if (!value.is_string()) return "found " + text;
  return "found " + (text.size() > longest ? "a long text" : text + " (text)");
}

std::string expected_number(const Field& field, bool integer) {
  const std::string range = range_text(field.range);
  return std::string(integer ? "an integer" : "a number") + (range.empty() ? "" : " " + range);
}

/// Advice for a text that stands where a number should: take the quotes off, and write it as JSON does.
std::string unquote_advice(const std::string& text) {
  if (!meant_as_number(text)) return "";
  const NumberToken number = read_number(text);
  if (number.value.is_null()) return "";
  return number.mistake.empty() ? ", remove the quotes" : ", write " + number.value.canonical() + " without quotes";
}

class Reader {
 public:
  Reader(Document& document, const FieldList& root) : document_(document), root_(root) {}

  /// `store` is false where the fields may be bound to an instance that is gone: then values are only checked.
  struct Section {
    const FieldList& fields;
    const Field* named = nullptr;
    std::string alternative;
    bool store = true;
  };
  void read(const Section& section, const Json& value, const std::string& path);

 private:
  void read_field(const Field& field, const Json& value, const std::string& path, bool store);
  void read_named(const Field& field, const Json& value, const std::string& path, bool store);
  std::optional<Json> check(const Field& field, const Json& value, const std::string& path);
  std::optional<Json> check_scalar(const Field& field, FieldKind kind, const Json& value, const std::string& path);
  std::optional<Json> check_number(const Field& field, bool integer, const Json& value, const std::string& path);
  std::optional<Json> check_list(const Field& field, FieldKind each, const Json& value, const std::string& path);
  std::optional<Json> check_choice(const Field& field, const Json& value, const std::string& path);
  std::nullopt_t refuse(const std::string& path, const std::string& message) {
    document_.problem(path, message);
    return std::nullopt;
  }

  Document& document_;
  const FieldList& root_;
};

std::string child(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

void Reader::read(const Section& section, const Json& value, const std::string& path) {
  if (!value.is_object()) {
    document_.problem(path, found(value) + ", expected an object in { }");
    return;
  }
  for (const auto& [key, element] : value.as_object()) {
    if (section.named && key == "name") continue;
    const std::string place = child(path, key);
    if (const Field* field = section.fields.find(key)) {
      read_field(*field, element, place, section.store);
    } else if (const Field* renamed = section.fields.find_former(key)) {
      const std::string now = json_quoted(renamed->name);
      if (value.find(renamed->name) == nullptr) {
        read_field(*renamed, element, place, section.store);
      } else {
        document_.key_problem(place, json_quoted(key) + " is the former name of " + now + ", which is given too, expected " + now + " alone");
      }
    } else {
      const KeyPlace where{section.fields, section.named, section.alternative, path, root_};
      document_.key_problem(place, unknown_key_message(key, where));
    }
  }
}

void Reader::read_field(const Field& field, const Json& value, const std::string& path, bool store) {
  if (document_.broken(path)) return;
  if (field.kind == FieldKind::named) return read_named(field, value, path, store);
  if (field.kind == FieldKind::object) return read({*field.members, nullptr, "", store}, value, path);
  const std::optional<Json> checked = check(field, value, path);
  if (checked && store) field.set(*checked);
}

void Reader::read_named(const Field& field, const Json& value, const std::string& path, bool store) {
  if (value.is_string()) {
    refuse(path, found(value) + ", expected an object, write {\"name\": " + value.canonical() + "}");
    return;
  }
  if (!value.is_object()) {
    refuse(path, found(value) + ", expected an object with a \"name\"");
    return;
  }
  const Json* name = value.find("name");
  const std::string name_path = child(path, "name");
  std::string chosen = store ? field.selected() : field.initial_name;
  if (name && document_.broken(name_path)) return;
  if (name) {
    const std::optional<Json> checked = check_choice(field, *name, name_path);
    const std::optional<std::string> meant =
        name->is_string() && !checked ? nearest(name->as_string(), field.choices) : std::nullopt;
    if (!checked && !meant) return;  // nobody knows which fields to expect
    chosen = checked ? checked->as_string() : *meant;
    if (!checked) store = false;
  } else if (chosen.empty()) {
    refuse(path, "missing \"name\", " + (field.choices.empty() ? "and there is none to choose from"
                                                               : "expected " + quoted_list(field.choices)));
    return;
  }
  if (!store) return read({field.preview(chosen), &field, chosen, false}, value, path);
  const FieldList* members = nullptr;
  try {
    members = &field.choose(chosen);
  } catch (const UserError& error) {
    refuse(name ? name_path : path, error.what());
    return;
  }
  read({*members, &field, chosen, true}, value, path);
}

std::optional<Json> Reader::check(const Field& field, const Json& value, const std::string& path) {
  if (value.is_null() && field.optional) return value;
  switch (field.kind) {
    case FieldKind::integers:
      return check_list(field, FieldKind::integer, value, path);
    case FieldKind::numbers:
      return check_list(field, FieldKind::number, value, path);
    default:
      return check_scalar(field, field.kind, value, path);
  }
}

std::optional<Json> Reader::check_scalar(const Field& field, FieldKind kind, const Json& value,
                                         const std::string& path) {
  if (kind == FieldKind::integer || kind == FieldKind::number) {
    return check_number(field, kind == FieldKind::integer, value, path);
  }
  if (kind == FieldKind::choice) return check_choice(field, value, path);
  if (kind == FieldKind::boolean) {
    if (value.is_bool()) return value;
    const std::string word = value.is_string() ? folded(value.as_string()) : "";
    const bool quoted = word == "true" || word == "false";
    return refuse(path,
                  found(value) + ", expected true or false" + (quoted ? ", write " + word + " without quotes" : ""));
  }
  if (value.is_string()) return value;
  const bool scalar = value.is_bool() || value.is_number();
  return refuse(path, found(value) + ", expected a text" + (scalar ? ", put it in double quotes" : ""));
}

std::optional<Json> Reader::check_number(const Field& field, bool integer, const Json& value, const std::string& path) {
  const std::string expected =
      ", expected " + expected_number(field, integer) + (value.is_null() && field.optional ? " or null" : "");
  if (!value.is_number()) {
    return refuse(path, found(value) + expected + (value.is_string() ? unquote_advice(value.as_string()) : ""));
  }
  const double number = value.as_number();
  if (integer && !value.is_integer()) {
    if (std::trunc(number) != number) return refuse(path, found(value) + expected);
    if (std::fabs(number) >= two_to_53) {
      return refuse(path, found(value) + expected + ", write all its digits without point or exponent");
    }
  }
  if (!integer && value.is_integer() && Json(number) != value) {
    return refuse(path, found(value) + expected + ", a double cannot hold all these digits");
  }
  if (!in_range(field.range, number)) return refuse(path, found(value) + expected);
  return integer ? Json(value.as_integer()) : Json(number);
}

std::optional<Json> Reader::check_list(const Field& field, FieldKind each, const Json& value, const std::string& path) {
  const bool integer = each == FieldKind::integer;
  if (!value.is_array()) {
    return refuse(path, found(value) + ", expected a list of " + (integer ? "integers" : "numbers") + " in [ ]");
  }
  Json::Array checked;
  bool good = true;
  for (std::size_t i = 0; i < value.as_array().size(); ++i) {
    const std::string place = path + "[" + std::to_string(i) + "]";
    std::optional<Json> element = check_number(field, integer, value.as_array()[i], place);
    good = good && element.has_value() && !document_.broken(place);
    if (good) checked.push_back(std::move(*element));
  }
  return good ? std::optional(Json(std::move(checked))) : std::nullopt;
}

std::optional<Json> Reader::check_choice(const Field& field, const Json& value, const std::string& path) {
  const std::string expected =
      field.choices.empty() ? ", there is none to choose from" : ", expected " + quoted_list(field.choices);
  if (!value.is_string()) return refuse(path, found(value) + expected);
  for (const std::string& choice : field.choices) {
    if (value.as_string() == choice) return value;
  }
  return refuse(path, "found " + value.canonical() + expected + did_you_mean(value.as_string(), field.choices));
}

}  // namespace

void use_present_names(const FieldList& fields, const std::string& path, Document& document) {
  for (const Field& field : fields.all()) {
    const Json* object = path.empty() ? &document.value() : document.value().at_path(path);
    if (object == nullptr || !object->is_object()) return;
    if (!field.former.empty() && object->find(field.name) == nullptr && object->find(field.former) != nullptr)
      document.rename(path, field.former, field.name);
    if (field.kind == FieldKind::object) use_present_names(*field.members, child(path, field.name), document);
    if (field.kind == FieldKind::named) use_present_names(field.bound(), child(path, field.name), document);
  }
}

void read_fields(const FieldList& fields, const Json& value, const std::string& path, Document& document,
                 const FieldList& root) {
  if (document.broken(path)) return;
  Reader(document, root).read({fields, nullptr, "", true}, value, path);
}

}  // namespace phasor
