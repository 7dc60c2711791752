#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/spec/json.h"
#include "core/spec/problems.h"

namespace phasor {

/// What the tolerant scanner found in a text: the value as far as it can be understood, every mistake of syntax, and
/// where each key and value stands.
struct Scan {
  Json value;
  std::vector<Problem> problems;
  std::vector<std::pair<std::string, Position>> values, keys;  // in the order of the text
  std::vector<std::string> broken;                             // paths whose value could not be understood
};

/// Lists and objects may be nested this deep; deeper ones are one mistake, not a stack overflow.
inline constexpr int max_depth = 100;

/// Reads JSON and, beyond it, what people write instead, so that one pass finds all mistakes. Columns count characters,
/// not bytes.
Scan scan_json(std::string_view text);

/// What a token that begins like a number is.
struct NumberToken {
  Json value;           // null when it is no number at all
  std::string mistake;  // empty: strict JSON that fits int64 or double
};
NumberToken read_number(std::string_view token);

/// Whether a token is a number as JSON writes it, whether or not it fits.
bool is_json_number(std::string_view token);

/// Whether a word is meant as a number: it begins with a digit after sign and point, or is a name of infinity or NaN.
bool meant_as_number(std::string_view token);

}  // namespace phasor
