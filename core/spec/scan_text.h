#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "core/spec/problems.h"

namespace phasor {

/// Lines and columns of offsets, quick when they are asked for in rising order. Columns count characters.
class Locator {
 public:
  /// `start` is where line 1 begins, after a byte order mark.
  explicit Locator(std::string_view text, std::size_t start = 0) : text_(text), offset_(start), line_start_(start) {}
  Position at(std::size_t offset);

 private:
  std::string_view text_;
  std::size_t offset_;
  std::size_t line_start_;
  Position position_{1, 1};
};

/// A character that opens a text: ", ', or one of the typographic quotes a word processor makes.
struct Quote {
  std::size_t length = 0;  // in bytes, 0 = none
  bool single = false;
  bool typographic = false;
};
Quote quote_at(std::string_view text, std::size_t at);

/// The inside of a quoted text is [first, last); scanning goes on at `next`.
struct QuotedSpan {
  std::size_t first, last, next;
  bool closed;
};
/// The end of a text without a closing quote on its line is guessed: a key ends at its colon, a value before the commas
/// and brackets that end the line.
QuotedSpan find_quoted(std::string_view text, std::size_t at, bool is_key);

/// What a quoted text stands for; `report` is told of each mistake and its offset.
std::string decode_escapes(std::string_view text, std::size_t first, std::size_t last,
                           const std::function<void(std::size_t, std::string)>& report);

/// The character for a message: `"%"`, `U+0007` or `the end of the file`.
std::string glyph_at(std::string_view text, std::size_t at);

}  // namespace phasor
