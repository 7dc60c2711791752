#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace phasor {

/// A JSON value. Objects keep the order of insertion; `canonical()` sorts. Integers that fit int64 are kept apart from
/// doubles so that a seed never loses digits, but `3` and `3.0` are equal and have the same canonical text.
class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  Json(std::int64_t value) : value_(value) {}
  Json(int value) : value_(static_cast<std::int64_t>(value)) {}
  Json(double value) : value_(value) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}
  static Json object() { return Json(Object{}); }
  static Json array() { return Json(Array{}); }

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(value_); }  // written without point or exponent
  bool is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  const char* type_name() const;  // "null", "boolean", "number", "string", "list", "object"

  // Each throws InternalError when the value has another type.
  bool as_bool() const;
  std::int64_t as_integer() const;  // also a double with an integral value
  double as_number() const;
  const std::string& as_string() const;
  const Array& as_array() const;
  Array& as_array();
  const Object& as_object() const;
  Object& as_object();

  /// Member of an object, or nullptr.
  const Json* find(std::string_view key) const;
  Json* find(std::string_view key);
  /// Member of an object, made (null) when absent; a null value becomes an object first.
  Json& operator[](std::string_view key);
  void erase(std::string_view key);
  void push_back(Json value);

  /// Value at a path such as "model.encoding.theta" or "axes[1].points[0].label", or nullptr.
  const Json* at_path(std::string_view path) const;
  /// Makes the objects on the way. Throws UserError when a step of the path is a value that is not an object.
  Json& make_path(std::string_view path);

  /// Sorted keys (by byte), no spaces, the fewest digits that read back to the same double (1e-3, 0.001 and 1E-3 give
  /// one text; an integral double below 2^63 is written as an integer, as `3` and `3.0` are equal; -0.0 is 0). Equal
  /// values have equal texts and the reverse. The text a trial's identity is computed from. A number that is infinite
  /// or NaN is an InternalError; bytes that are not UTF-8 become U+FFFD.
  std::string canonical() const;
  /// For people: insertion order, two spaces of indentation, short lists of scalars on one line, 1.0 stays 1.0.
  std::string pretty() const;

  /// Numbers by value, exactly (2^53 + 1 differs from 2^53); objects whatever the order of their keys.
  bool operator==(const Json& other) const;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

/// A double with the fewest digits that read back to the same bits, whatever the locale: fixed from 1e-4 up to 1e16
/// (0.001, 500000), otherwise with an exponent (1e-8, 1.5e20). Infinite and NaN: "inf", "-inf", "nan" (never in JSON).
std::string shortest(double value);

/// Text in double quotes with JSON's escapes.
std::string json_quoted(std::string_view text);

/// Strict reading of a text that should be right, such as one written by `canonical`. UserError naming `name` and every
/// mistake; use `Document` where the positions are needed later.
Json parse_json(std::string_view text, const std::string& name);

}  // namespace phasor
