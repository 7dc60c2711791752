#include "core/spec/scan_text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>

#include "core/base/text.h"

namespace phasor {

namespace {

std::string code_name(unsigned code) {
  char name[16] = {};
  std::snprintf(name, sizeof name, "U+%04X", code);
  return name;
}

/// Bytes of the character that begins here; the text is known to be UTF-8.
std::size_t character_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

std::optional<char32_t> four_hex(std::string_view text, std::size_t at, std::size_t last) {
  unsigned code = 0;
  if (at + 4 > last) return std::nullopt;
  const auto [stop, error] = std::from_chars(text.data() + at, text.data() + at + 4, code, 16);
  return error == std::errc() && stop == text.data() + at + 4 ? std::optional<char32_t>(code) : std::nullopt;
}

/// One \uXXXX or a pair of them at `at` (of the backslash). Gives the code point and moves `at` behind it.
std::optional<char32_t> unicode_escape(std::string_view text, std::size_t& at, std::size_t last) {
  const std::optional<char32_t> high = four_hex(text, at + 2, last);
  if (!high || (*high >= 0xDC00 && *high <= 0xDFFF)) return std::nullopt;
  if (*high < 0xD800 || *high > 0xDBFF) {
    at += 6;
    return high;
  }
  if (at + 12 > last || text.substr(at + 6, 2) != "\\u") return std::nullopt;
  const std::optional<char32_t> low = four_hex(text, at + 8, last);
  if (!low || *low < 0xDC00 || *low > 0xDFFF) return std::nullopt;
  at += 12;
  return 0x10000 + ((*high - 0xD800) << 10) + (*low - 0xDC00);
}

std::optional<char> simple_escape(char letter) {
  static constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
  const std::size_t at = letters.find(letter);
  return at == std::string_view::npos ? std::nullopt : std::optional(meanings[at]);
}

}  // namespace

Position Locator::at(std::size_t offset) {
  if (offset < offset_) {
    while (offset < line_start_ && line_start_ > 0) {
      --position_.line;
      const std::size_t before = line_start_ >= 2 ? text_.rfind('\n', line_start_ - 2) : std::string_view::npos;
      line_start_ = before == std::string_view::npos ? 0 : before + 1;
    }
    offset_ = line_start_;
    position_.column = 1;
  }
  for (; offset_ < offset && offset_ < text_.size(); ++offset_) {
    if (text_[offset_] == '\n') {
      ++position_.line;
      position_.column = 1;
      line_start_ = offset_ + 1;
    } else if ((static_cast<unsigned char>(text_[offset_]) & 0xC0) != 0x80) {
      ++position_.column;
    }
  }
  return position_;
}

Quote quote_at(std::string_view text, std::size_t at) {
  if (at >= text.size()) return {};
  if (text[at] == '"') return {1, false, false};
  if (text[at] == '\'') return {1, true, false};
  const std::string_view three = text.substr(at, 3);
  if (three == "\u201C" || three == "\u201D" || three == "\u201E") return {3, false, true};
  if (three == "\u2018" || three == "\u2019" || three == "\u201A") return {3, true, true};
  return {};
}

QuotedSpan find_quoted(std::string_view text, std::size_t at, bool is_key) {
  const Quote open = quote_at(text, at);
  const std::size_t first = at + open.length;
  std::size_t i = first;
  for (; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] != '\n') {
      ++i;
      continue;
    }
    const Quote quote = quote_at(text, i);
    // A typographic quote may be closed by a straight one, but inside straight quotes it is a character like others.
    if (quote.length > 0 && quote.single == open.single && (open.typographic || !quote.typographic)) {
      return {first, i, i + quote.length, true};
    }
  }
  const std::string_view line = text.substr(first, i - first);
  std::size_t length = line.find_last_not_of(" \t\r,}]");
  length = length == std::string_view::npos ? 0 : length + 1;
  if (is_key) length = std::min(length, line.find(':'));
  return {first, first + length, first + length, false};
}

std::string decode_escapes(std::string_view text, std::size_t first, std::size_t last,
                           const std::function<void(std::size_t, std::string)>& report) {
  std::string result;
  for (std::size_t at = first; at < last;) {
    const char c = text[at];
    if (static_cast<unsigned char>(c) < 0x20) {
      const std::string found = code_name(static_cast<unsigned char>(c));
      report(at, c == '\t' ? "found a tab in a text, expected \\t"
                           : "found the control character " + found + " in a text, expected an escape such as \\n");
    }
    if (c != '\\') {
      result += c;
      ++at;
      continue;
    }
    const char letter = at + 1 < last ? text[at + 1] : ' ';
    if (const std::optional<char> meaning = simple_escape(letter)) {
      result += *meaning;
      at += 2;
    } else if (letter == 'u') {
      if (const std::optional<char32_t> code = unicode_escape(text, at, last)) {
        append_utf8(result, *code);
        continue;
      }
      std::size_t shown = at + 2;
      while (shown < std::min(at + 6, last) && text[shown] > ' ' && text[shown] <= '~') ++shown;
      report(at, "found " + std::string(text.substr(at, shown - at)) +
                     ", expected \\u and four hexadecimal digits of a character, or a pair of surrogates");
      append_utf8(result, 0xFFFD);
      at += 2;
    } else {
      const std::string shown = at + 1 < last ? glyph_at(text, at + 1) : "the end of the text";
      report(at, "found a backslash before " + shown + ", which is no escape of JSON; write \\\\ for a backslash");
      result += '\\';
      ++at;
    }
  }
  return result;
}

std::string glyph_at(std::string_view text, std::size_t at) {
  if (at >= text.size()) return "the end of the file";
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x20 || byte == 0x7F) return code_name(byte);
  if (byte == '"') return "'\"'";
  return '"' + std::string(text.substr(at, character_length(text[at]))) + '"';
}

}  // namespace phasor
