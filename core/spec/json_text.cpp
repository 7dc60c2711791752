#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/spec/json.h"

namespace phasor {

namespace {

constexpr std::size_t line_width = 100;  // a list of scalars longer than this goes one element a line

template <class... Arguments>
std::string to_text(Arguments... arguments) {
  // Fixed notation is only asked for below 1e16 and above 1e-4, so this holds every double and every int64.
  std::array<char, 64> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), arguments...);
  PHASOR_CHECK(error == std::errc(), "number does not fit its buffer");
  return std::string(buffer.data(), end);
}

/// "1.5e+07" to "1.5e7", "1e-08" to "1e-8".
std::string without_padding(const std::string& scientific) {
  const std::size_t mark = scientific.find('e');
  std::size_t digits = mark + 2;
  while (digits + 1 < scientific.size() && scientific[digits] == '0') ++digits;
  return scientific.substr(0, mark + 1) + (scientific[mark + 1] == '-' ? "-" : "") + scientific.substr(digits);
}

void append_escaped(std::string& out, unsigned char c) {
  static constexpr std::string_view hex = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  if (c >= 0x20) {
    out += static_cast<char>(c);
  } else {
    out += "\\u00";
    out += hex[c >> 4];
    out += hex[c & 15];
  }
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::optional<std::size_t> bad = find_bad_utf8(text);
    for (const char c : text.substr(0, bad.value_or(text.size()))) append_escaped(out, static_cast<unsigned char>(c));
    if (!bad) break;
    out += "\xEF\xBF\xBD";  // U+FFFD: a file that other programs refuse to read would be worse
    text.remove_prefix(*bad + 1);
  }
  out += '"';
}

std::string canonical_number(const Json& json) {
  if (json.is_integer()) return to_text(json.as_integer());
  const double value = json.as_number();
  PHASOR_CHECK(std::isfinite(value), "JSON has no " + shortest(value));
  const bool integral = value >= -0x1p63 && value < 0x1p63 && std::trunc(value) == value;
  return integral ? to_text(static_cast<std::int64_t>(value)) : shortest(value);
}

std::string pretty_number(const Json& json) {
  if (json.is_integer()) return to_text(json.as_integer());
  const double value = json.as_number();
  PHASOR_CHECK(std::isfinite(value), "JSON has no " + shortest(value));
  std::string text = shortest(value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

void append_canonical(std::string& out, const Json& json);

void append_canonical(std::string& out, const Json::Object& object) {
  std::vector<const Json::Member*> members;
  for (const Json::Member& member : object) members.push_back(&member);
  std::stable_sort(members.begin(), members.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
  out += '{';
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i > 0) out += ',';
    append_quoted(out, members[i]->first);
    out += ':';
    append_canonical(out, members[i]->second);
  }
  out += '}';
}

void append_canonical(std::string& out, const Json& json) {
  if (json.is_null()) {
    out += "null";
  } else if (json.is_bool()) {
    out += json.as_bool() ? "true" : "false";
  } else if (json.is_number()) {
    out += canonical_number(json);
  } else if (json.is_string()) {
    append_quoted(out, json.as_string());
  } else if (json.is_object()) {
    append_canonical(out, json.as_object());
  } else {
    out += '[';
    bool first = true;
    for (const Json& element : json.as_array()) {
      if (!first) out += ',';
      first = false;
      append_canonical(out, element);
    }
    out += ']';
  }
}

void append_pretty(std::string& out, const Json& json, std::size_t indent);

/// The list on one line, or nothing when it holds lists or objects or is too long.
std::optional<std::string> one_line(const Json::Array& array, std::size_t indent) {
  std::string line = "[";
  for (const Json& element : array) {
    if (element.is_array() || element.is_object()) return std::nullopt;
    if (line.size() > 1) line += ", ";
    append_pretty(line, element, 0);
    if (line.size() + indent > line_width) return std::nullopt;
  }
  return line + "]";
}

void append_pretty(std::string& out, const Json::Array& array, std::size_t indent) {
  if (const std::optional<std::string> line = one_line(array, indent)) {
    out += *line;
    return;
  }
  out += '[';
  for (std::size_t i = 0; i < array.size(); ++i) {
    out += (i > 0 ? ",\n" : "\n") + std::string(indent + 2, ' ');
    append_pretty(out, array[i], indent + 2);
  }
  out += '\n' + std::string(indent, ' ') + ']';
}

void append_pretty(std::string& out, const Json::Object& object, std::size_t indent) {
  if (object.empty()) {
    out += "{}";
    return;
  }
  out += '{';
  for (std::size_t i = 0; i < object.size(); ++i) {
    out += (i > 0 ? ",\n" : "\n") + std::string(indent + 2, ' ');
    append_quoted(out, object[i].first);
    out += ": ";
    append_pretty(out, object[i].second, indent + 2);
  }
  out += '\n' + std::string(indent, ' ') + '}';
}

void append_pretty(std::string& out, const Json& json, std::size_t indent) {
  if (json.is_array()) {
    append_pretty(out, json.as_array(), indent);
  } else if (json.is_object()) {
    append_pretty(out, json.as_object(), indent);
  } else if (json.is_number()) {
    out += pretty_number(json);
  } else {
    append_canonical(out, json);
  }
}

}  // namespace

std::string shortest(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const double size = std::fabs(value);
  if (size == 0.0 || (size >= 1e-4 && size < 1e16)) return to_text(value, std::chars_format::fixed);
  return without_padding(to_text(value, std::chars_format::scientific));
}

std::string json_quoted(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

std::string Json::canonical() const {
  std::string out;
  append_canonical(out, *this);
  return out;
}

std::string Json::pretty() const {
  std::string out;
  append_pretty(out, *this, 0);
  return out;
}

}  // namespace phasor
