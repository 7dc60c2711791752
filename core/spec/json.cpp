#include "core/spec/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/base/error.h"

namespace phasor {

namespace {

constexpr double two_to_63 = 9223372036854775808.0;

/// The integer a double stands for, if it stands for one that fits.
std::optional<std::int64_t> integral(double value) {
  if (!(value >= -two_to_63 && value < two_to_63) || std::trunc(value) != value) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

std::vector<const Json::Member*> sorted(const Json::Object& object) {
  std::vector<const Json::Member*> members;
  members.reserve(object.size());
  for (const Json::Member& member : object) members.push_back(&member);
  std::stable_sort(members.begin(), members.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
  return members;
}

bool equal_objects(const Json::Object& a, const Json::Object& b) {
  if (a.size() != b.size()) return false;
  const auto left = sorted(a), right = sorted(b);
  return std::equal(left.begin(), left.end(), right.begin(),
                    [](const auto* x, const auto* y) { return x->first == y->first && x->second == y->second; });
}

/// One step of a path: a key, or the index of a list.
struct Step {
  std::string_view key;
  std::optional<std::size_t> index;
};

/// Takes the first step off `path`; nothing when the path is malformed ("a..b", "a[", "[x]").
std::optional<Step> take_step(std::string_view& path) {
  Step step;
  if (path.front() == '[') {
    const std::size_t end = path.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    std::size_t index = 0;
    const auto [stop, error] = std::from_chars(path.data() + 1, path.data() + end, index);
    if (error != std::errc() || stop != path.data() + end) return std::nullopt;
    step.index = index;
    path.remove_prefix(end + 1);
  } else {
    step.key = path.substr(0, path.find_first_of(".["));
    if (step.key.empty()) return std::nullopt;
    path.remove_prefix(step.key.size());
  }
  if (!path.empty() && path.front() == '.') {
    path.remove_prefix(1);
    if (path.empty() || path.front() == '[') return std::nullopt;
  } else if (!path.empty() && path.front() != '[') {
    return std::nullopt;
  }
  return step;
}

}  // namespace

const char* Json::type_name() const {
  if (is_null()) return "null";
  if (is_bool()) return "boolean";
  if (is_number()) return "number";
  if (is_string()) return "string";
  return is_array() ? "list" : "object";
}

bool Json::as_bool() const {
  PHASOR_CHECK(is_bool(), std::string("expected a boolean, found ") + type_name());
  return std::get<bool>(value_);
}

std::int64_t Json::as_integer() const {
  if (is_integer()) return std::get<std::int64_t>(value_);
  PHASOR_CHECK(is_number(), std::string("expected an integer, found ") + type_name());
  const double number = std::get<double>(value_);
  const std::optional<std::int64_t> value = integral(number);
  PHASOR_CHECK(value.has_value(), "expected an integer, found " + shortest(number));
  return *value;
}

double Json::as_number() const {
  if (is_integer()) return static_cast<double>(std::get<std::int64_t>(value_));
  PHASOR_CHECK(is_number(), std::string("expected a number, found ") + type_name());
  return std::get<double>(value_);
}

const std::string& Json::as_string() const {
  PHASOR_CHECK(is_string(), std::string("expected a string, found ") + type_name());
  return std::get<std::string>(value_);
}

const Json::Array& Json::as_array() const {
  PHASOR_CHECK(is_array(), std::string("expected a list, found ") + type_name());
  return std::get<Array>(value_);
}

Json::Array& Json::as_array() {
  PHASOR_CHECK(is_array(), std::string("expected a list, found ") + type_name());
  return std::get<Array>(value_);
}

const Json::Object& Json::as_object() const {
  PHASOR_CHECK(is_object(), std::string("expected an object, found ") + type_name());
  return std::get<Object>(value_);
}

Json::Object& Json::as_object() {
  PHASOR_CHECK(is_object(), std::string("expected an object, found ") + type_name());
  return std::get<Object>(value_);
}

const Json* Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const Member& member : std::get<Object>(value_)) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

Json* Json::find(std::string_view key) { return const_cast<Json*>(std::as_const(*this).find(key)); }

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = Object{};
  if (Json* member = find(key)) return *member;
  return as_object().emplace_back(std::string(key), Json()).second;
}

void Json::erase(std::string_view key) {
  std::erase_if(as_object(), [&](const Member& member) { return member.first == key; });
}

void Json::push_back(Json value) {
  if (is_null()) value_ = Array{};
  as_array().push_back(std::move(value));
}

const Json* Json::at_path(std::string_view path) const {
  const Json* here = this;
  while (here && !path.empty()) {
    const std::optional<Step> step = take_step(path);
    if (!step) return nullptr;
    if (!step->index) {
      here = here->find(step->key);
    } else if (here->is_array() && *step->index < here->as_array().size()) {
      here = &here->as_array()[*step->index];
    } else {
      return nullptr;
    }
  }
  return here;
}

Json& Json::make_path(std::string_view path) {
  const std::string whole(path);
  if (path.empty()) throw UserError("empty path, expected one such as optimizer.lr");
  Json* here = this;
  while (!path.empty()) {
    const std::string_view done = std::string_view(whole).substr(0, whole.size() - path.size());
    const std::optional<Step> step = take_step(path);
    if (!step) throw UserError(whole + ": malformed path, expected names joined by single dots, such as optimizer.lr");
    if (step->index) throw UserError(whole + ": an element of a list cannot be set alone, set the whole list");
    if (!here->is_null() && !here->is_object()) {
      const std::string_view place = done.empty() ? "the top level" : done.substr(0, done.size() - 1);
      throw UserError(whole + ": found a " + here->type_name() + " at " + std::string(place) +
                      ", expected an object, correct the path");
    }
    here = &(*here)[step->key];
  }
  return *here;
}

bool Json::operator==(const Json& other) const {
  if (is_number() && other.is_number()) {
    if (is_integer() == other.is_integer()) return value_ == other.value_;
    const std::optional<std::int64_t> value = integral(is_integer() ? other.as_number() : as_number());
    return value && *value == (is_integer() ? as_integer() : other.as_integer());
  }
  if (is_object() && other.is_object()) return equal_objects(as_object(), other.as_object());
  return value_ == other.value_;
}

}  // namespace phasor
