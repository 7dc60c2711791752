#include "analysis/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "core/spec/json.h"

namespace phasor::analysis {
namespace {

std::string formatted(double value, std::chars_format format, int precision) {
  char buffer[400];  // the largest double has 309 digits before the point
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value, format, precision);
  return std::string(buffer, result.ptr);
}

}  // namespace

std::string digits(double value) {
  if (!std::isfinite(value)) return shortest(value);
  const double size = std::abs(value);
  if (size != 0.0 && size < 0.00005) return formatted(value, std::chars_format::scientific, 1);
  if (size >= 1e9) return formatted(value, std::chars_format::scientific, 4);
  return formatted(value, std::chars_format::fixed, 4);
}

std::string digits(const std::optional<double>& value) { return value ? digits(*value) : std::string(); }

std::string short_digits(const std::string& digits) {
  if (digits.starts_with("0.")) return digits.substr(1);
  if (digits.starts_with("-0.")) return "-" + digits.substr(2);
  return digits;
}

std::string grouped(std::int64_t value) {
  std::string text = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

std::string fixed(double value, int decimals) {
  return std::isfinite(value) ? formatted(value, std::chars_format::fixed, decimals) : shortest(value);
}

std::string counted(std::int64_t count, const std::string& noun) {
  return grouped(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string latex_escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '\\':
        escaped += "\\textbackslash{}";
        break;
      case '~':
        escaped += "\\textasciitilde{}";
        break;
      case '^':
        escaped += "\\textasciicircum{}";
        break;
      case '<':
      case '>':
        escaped += std::string("$") + c + "$";
        break;
      case '\n':
      case '\r':
        escaped += ' ';
        break;
      default:
        if (std::string_view("&%$#_{}").find(c) != std::string_view::npos) escaped += '\\';
        escaped += c;
    }
  }
  return escaped;
}

std::string join(const std::vector<std::string>& parts, const std::string& between) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "" : between) + parts[i];
  return text;
}

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;  // not a continuation byte
  }));
}

std::string padded(const std::string& text, std::size_t width) {
  const std::size_t used = width_of(text);
  return used >= width ? text : text + std::string(width - used, ' ');
}

}  // namespace phasor::analysis
