#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/base/text.h"
#include "core/spec/scanner.h"

namespace phasor {

namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }

struct Shape {
  bool number = false;   // -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)?
  bool integer = false;  // without fraction and exponent
};

Shape shape_of(std::string_view token) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t first = at;
    while (at < token.size() && digit(token[at])) ++at;
    return at - first;
  };
  if (at < token.size() && token[at] == '-') ++at;
  const std::size_t first = at;
  const std::size_t count = digits();
  if (count == 0 || (count > 1 && token[first] == '0')) return {};
  if (at == token.size()) return {true, true};
  if (token[at] == '.') {
    ++at;
    if (digits() == 0) return {};
  }
  if (at < token.size() && (token[at] == 'e' || token[at] == 'E')) {
    ++at;
    if (at < token.size() && (token[at] == '+' || token[at] == '-')) ++at;
    if (digits() == 0) return {};
  }
  return {at == token.size(), false};
}

/// Whether the first digit that counts stands left of the point: tells too large from too small.
bool large(std::string_view token) {
  const std::size_t mark = std::min(token.find_first_of("eE"), token.size());
  const bool negative_exponent = mark + 1 < token.size() && token[mark + 1] == '-';
  const std::string_view mantissa = token.substr(0, mark);
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  const std::size_t leading = mantissa.find_first_of("123456789");
  const double place = static_cast<double>(point) - static_cast<double>(leading);
  double exponent = 0.0;
  for (std::size_t i = mark + 1; i < token.size(); ++i) {
    if (digit(token[i])) exponent = std::min(1e12, exponent * 10.0 + (token[i] - '0'));
  }
  return place + (negative_exponent ? -exponent : exponent) > 0.0;
}

NumberToken strict_number(std::string_view token, bool integer) {
  const char* end = token.data() + token.size();
  if (integer) {
    std::int64_t value = 0;
    if (std::from_chars(token.data(), end, value).ec == std::errc()) return {Json(value), ""};
    return {Json(), "found " + std::string(token) + ", expected an integer from -2^63 to 2^63 - 1"};
  }
  double value = 0.0;
  if (std::from_chars(token.data(), end, value).ec == std::errc()) return {Json(value), ""};
  return {Json(), "found " + std::string(token) +
                      (large(token) ? ", expected a number that fits a double, below 1.8e308 in size"
                                    : ", expected a number that fits a double, 0 or above 4.9e-324 in size")};
}

/// The token in JSON's way of writing, as far as only the way of writing is wrong: +1, .5, 5., 007, 1_000.
std::string tidied(std::string_view token) {
  std::string sign, body;
  if (!token.empty() && (token.front() == '+' || token.front() == '-')) {
    if (token.front() == '-') sign = "-";
    token.remove_prefix(1);
  }
  for (std::size_t i = 0; i < token.size(); ++i) {
    const bool separates =
        token[i] == '_' && i > 0 && i + 1 < token.size() && digit(token[i - 1]) && digit(token[i + 1]);
    if (!separates) body += token[i];
  }
  const std::size_t zeros = std::min(body.find_first_not_of('0'), body.size());
  const bool before_digit = zeros < body.size() && digit(body[zeros]);
  if (zeros > 0) body.erase(0, before_digit ? zeros : zeros - 1);
  if (!body.empty() && body.front() == '.') body.insert(body.begin(), '0');
  const std::size_t point = body.find('.');
  if (point != std::string::npos && (point + 1 == body.size() || !digit(body[point + 1])))
    body.insert(point + 1, 1, '0');
  return sign + body;
}

bool infinite_or_nan(std::string_view token) {
  if (!token.empty() && (token.front() == '+' || token.front() == '-')) token.remove_prefix(1);
  const std::string word = folded(token);
  return word == "nan" || word == "inf" || word == "infinity";
}

std::optional<std::int64_t> hexadecimal(std::string_view token) {
  std::int64_t value = 0;
  if (token.size() < 3 || token[0] != '0' || (token[1] != 'x' && token[1] != 'X')) return std::nullopt;
  const char* end = token.data() + token.size();
  const auto [stop, error] = std::from_chars(token.data() + 2, end, value, 16);
  return error == std::errc() && stop == end && value >= 0 ? std::optional(value) : std::nullopt;
}

}  // namespace

bool is_json_number(std::string_view token) { return shape_of(token).number; }

bool meant_as_number(std::string_view token) {
  const std::size_t first = token.find_first_not_of("+-.");
  return infinite_or_nan(token) || (first != std::string_view::npos && digit(token[first]));
}

NumberToken read_number(std::string_view token) {
  if (const Shape shape = shape_of(token); shape.number) return strict_number(token, shape.integer);
  const std::string found = "found " + std::string(token) + ", expected ";
  if (infinite_or_nan(token)) return {Json(), found + "a finite number"};
  if (const std::optional<std::int64_t> value = hexadecimal(token)) {
    return {Json(*value), found + "a decimal number, write " + std::to_string(*value)};
  }
  const std::string tidy = tidied(token);
  if (const Shape shape = shape_of(tidy); shape.number) {
    NumberToken result = strict_number(tidy, shape.integer);
    if (result.mistake.empty()) result.mistake = found + tidy;
    return result;
  }
  return {Json(), found + "a number, put text in double quotes"};
}

}  // namespace phasor
