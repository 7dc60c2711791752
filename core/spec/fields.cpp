#include "core/spec/fields.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/spec/json.h"

namespace phasor {

namespace {

template <class T>
Json list_to_json(const std::vector<T>& list) {
  Json::Array array;
  array.reserve(list.size());
  for (const T& element : list) array.emplace_back(element);
  return Json(std::move(array));
}

template <class T>
Json optional_to_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Field leaf(std::string name, FieldKind kind, std::string help, Range range = {}) {
  Field field;
  field.name = std::move(name);
  field.kind = kind;
  field.help = std::move(help);
  field.range = range;
  return field;
}

}  // namespace

bool in_range(const Range& range, double value) {
  const bool low = range.low_open ? value > range.low : value >= range.low;
  const bool high = range.high_open ? value < range.high : value <= range.high;
  return low && high;
}

std::string range_text(const Range& range) {
  // A whole number in all its digits, as it has to be written where an integer is expected.
  const auto text = [](double bound) {
    const bool whole = std::fabs(bound) >= 1e15 && std::fabs(bound) < 9.2233720368547e18 && std::trunc(bound) == bound;
    return whole ? std::to_string(static_cast<std::int64_t>(bound)) : shortest(bound);
  };
  const std::string low = text(range.low), high = text(range.high);
  if (std::isinf(range.low) && std::isinf(range.high)) return "";
  if (std::isinf(range.high)) return (range.low_open ? "above " : "at least ") + low;
  if (std::isinf(range.low)) return (range.high_open ? "below " : "at most ") + high;
  return low + (range.low_open ? " (excluded)" : "") + " to " + high + (range.high_open ? " (excluded)" : "");
}

const FieldList& Field::choose(const std::string& chosen) const {
  PHASOR_CHECK(kind == FieldKind::named, name + " is not a named object");
  if (binding->members && binding->name == chosen && selected() == chosen) return *binding->members;
  auto made = std::make_shared<FieldList>(select(chosen));
  PHASOR_CHECK(selected() == chosen, name + ": asked for \"" + chosen + "\", got \"" + selected() + "\"");
  PHASOR_CHECK(!made->find("name"), name + " \"" + chosen + "\": a field cannot be called \"name\"");
  binding->members = std::move(made);
  binding->name = chosen;
  return *binding->members;
}

const FieldList& Field::bound() const {
  static const FieldList none;
  if (kind == FieldKind::object) return *members;
  PHASOR_CHECK(kind == FieldKind::named, name + " has no fields below it");
  const std::string now = selected();
  return now.empty() ? none : choose(now);
}

void FieldList::boolean(std::string name, bool& target, std::string help) {
  Field field = leaf(std::move(name), FieldKind::boolean, std::move(help));
  field.set = [&target](const Json& value) { target = value.as_bool(); };
  field.get = [&target] { return Json(target); };
  add(std::move(field));
}

void FieldList::boolean(std::string name, std::optional<bool>& target, std::string help) {
  Field field = leaf(std::move(name), FieldKind::boolean, std::move(help));
  field.optional = true;
  field.set = [&target](const Json& value) {
    target = value.is_null() ? std::nullopt : std::optional(value.as_bool());
  };
  field.get = [&target] { return optional_to_json(target); };
  add(std::move(field));
}

void FieldList::integer(std::string name, std::int64_t& target, std::string help, Range range) {
  Field field = leaf(std::move(name), FieldKind::integer, std::move(help), range);
  field.set = [&target](const Json& value) { target = value.as_integer(); };
  field.get = [&target] { return Json(target); };
  add(std::move(field));
}

void FieldList::integer(std::string name, std::optional<std::int64_t>& target, std::string help, Range range) {
  Field field = leaf(std::move(name), FieldKind::integer, std::move(help), range);
  field.optional = true;
  field.set = [&target](const Json& value) {
    target = value.is_null() ? std::nullopt : std::optional(value.as_integer());
  };
  field.get = [&target] { return optional_to_json(target); };
  add(std::move(field));
}

void FieldList::number(std::string name, double& target, std::string help, Range range) {
  Field field = leaf(std::move(name), FieldKind::number, std::move(help), range);
  field.set = [&target](const Json& value) { target = value.as_number(); };
  field.get = [&target] { return Json(target); };
  add(std::move(field));
}

void FieldList::number(std::string name, std::optional<double>& target, std::string help, Range range) {
  Field field = leaf(std::move(name), FieldKind::number, std::move(help), range);
  field.optional = true;
  field.set = [&target](const Json& value) {
    target = value.is_null() ? std::nullopt : std::optional(value.as_number());
  };
  field.get = [&target] { return optional_to_json(target); };
  add(std::move(field));
}

void FieldList::text(std::string name, std::string& target, std::string help) {
  Field field = leaf(std::move(name), FieldKind::text, std::move(help));
  field.set = [&target](const Json& value) { target = value.as_string(); };
  field.get = [&target] { return Json(target); };
  add(std::move(field));
}

void FieldList::choice(std::string name, std::string& target, std::vector<std::string> choices, std::string help) {
  Field field = leaf(std::move(name), FieldKind::choice, std::move(help));
  field.choices = std::move(choices);
  field.set = [&target](const Json& value) { target = value.as_string(); };
  field.get = [&target] { return Json(target); };
  add(std::move(field));
}

void FieldList::integers(std::string name, std::vector<std::int64_t>& target, std::string help, Range each) {
  Field field = leaf(std::move(name), FieldKind::integers, std::move(help), each);
  field.set = [&target](const Json& value) {
    target.clear();
    for (const Json& element : value.as_array()) target.push_back(element.as_integer());
  };
  field.get = [&target] { return list_to_json(target); };
  add(std::move(field));
}

void FieldList::numbers(std::string name, std::vector<double>& target, std::string help, Range each) {
  Field field = leaf(std::move(name), FieldKind::numbers, std::move(help), each);
  field.set = [&target](const Json& value) {
    target.clear();
    for (const Json& element : value.as_array()) target.push_back(element.as_number());
  };
  field.get = [&target] { return list_to_json(target); };
  add(std::move(field));
}

void FieldList::named(std::string name, std::vector<std::string> names, std::string help,
                      std::function<FieldList(const std::string&)> select, std::function<std::string()> selected,
                      std::function<FieldList(const std::string&)> preview) {
  Field field = leaf(std::move(name), FieldKind::named, std::move(help));
  PHASOR_CHECK(select && selected && preview, field.name + ": a named object needs select, selected and preview");
  field.choices = std::move(names);
  field.select = std::move(select);
  field.selected = std::move(selected);
  field.preview = std::move(preview);
  field.initial_name = field.selected();
  field.binding = std::make_shared<Field::Binding>();
  add(std::move(field));
}

void FieldList::append(FieldList other) {
  for (Field& field : other.fields_) add(std::move(field));
}

const Field* FieldList::find(const std::string& name) const {
  const auto at = std::find_if(fields_.begin(), fields_.end(), [&](const Field& field) { return field.name == name; });
  return at == fields_.end() ? nullptr : &*at;
}

const Field* FieldList::find_former(const std::string& name) const {
  const auto at = std::find_if(fields_.begin(), fields_.end(), [&](const Field& field) { return field.former == name; });
  return at == fields_.end() || name.empty() ? nullptr : &*at;
}

void FieldList::formerly(const std::string& name, std::string former) {
  const auto at = std::find_if(fields_.begin(), fields_.end(), [&](const Field& field) { return field.name == name; });
  PHASOR_CHECK(at != fields_.end(), "no field is called \"" + name + "\"");
  PHASOR_CHECK(!find(former) && !find_former(former), "field \"" + former + "\" is listed twice");
  at->former = std::move(former);
}

void FieldList::add_object(std::string name, std::shared_ptr<FieldList> members, std::string help) {
  Field field = leaf(std::move(name), FieldKind::object, std::move(help));
  field.members = std::move(members);
  add(std::move(field));
}

void FieldList::add(Field field) {
  PHASOR_CHECK(!field.name.empty(), "a field without a name");
  PHASOR_CHECK(!find(field.name) && !find_former(field.name), "field \"" + field.name + "\" is listed twice");
  if (!field.initial) field.initial = std::make_shared<Json>(field.get ? field.get() : Json());
  fields_.push_back(std::move(field));
}

}  // namespace phasor
