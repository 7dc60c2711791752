#include "core/base/text.h"

#include <algorithm>

namespace phasor {

namespace {

/// Length of the well-formed sequence at the start of `text`, 0 if there is none (Unicode 15, table 3-7).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](std::size_t i) { return byte(i) >= 0x80u && byte(i) <= 0xBFu; };
  const unsigned lead = byte(0);
  if (lead < 0x80u) return 1;
  if (lead >= 0xC2u && lead <= 0xDFu) return follows(1) ? 2 : 0;
  if (lead >= 0xE0u && lead <= 0xEFu) {
    const unsigned low = lead == 0xE0u ? 0xA0u : 0x80u;
    const unsigned high = lead == 0xEDu ? 0x9Fu : 0xBFu;
    return byte(1) >= low && byte(1) <= high && follows(2) ? 3 : 0;
  }
  if (lead >= 0xF0u && lead <= 0xF4u) {
    const unsigned low = lead == 0xF0u ? 0x90u : 0x80u;
    const unsigned high = lead == 0xF4u ? 0x8Fu : 0xBFu;
    return byte(1) >= low && byte(1) <= high && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::optional<std::size_t> find_bad_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text.substr(at, 4));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

void append_utf8(std::string& text, char32_t code) {
  const auto push = [&](char32_t byte) { text.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
  if (code < 0x80) {
    push(code);
  } else if (code < 0x800) {
    push(0xC0 | (code >> 6));
    push(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    push(0xE0 | (code >> 12));
    push(0x80 | ((code >> 6) & 0x3F));
    push(0x80 | (code & 0x3F));
  } else {
    push(0xF0 | (code >> 18));
    push(0x80 | ((code >> 12) & 0x3F));
    push(0x80 | ((code >> 6) & 0x3F));
    push(0x80 | (code & 0x3F));
  }
}

std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> before(to.size() + 1), row(to.size() + 1), next(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t replaced = row[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      next[j] = std::min({replaced, row[j] + 1, next[j - 1] + 1});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        next[j] = std::min(next[j], before[j - 2] + 1);
      }
    }
    before.swap(row);
    row.swap(next);
  }
  return row[to.size()];
}

std::string folded(std::string_view name) {
  std::string result(name);
  for (char& c : result) {
    if (c == '-' || c == ' ') c = '_';
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t longest = 100;  // nobody mistypes a longer name; bounds the time
  if (word.size() > longest) return std::nullopt;
  const std::string wanted = folded(word);
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > longest) continue;
    const std::size_t distance = edit_distance(wanted, folded(candidate));
    // A third of the word may be wrong; in very short words one letter, but not every letter.
    const std::size_t allowed = std::max<std::size_t>(1, std::min(word.size(), candidate.size()) / 3);
    if (distance > allowed || (distance > 0 && candidate.size() <= 1)) continue;
    if (!best || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string shell_words(const std::vector<std::string>& words) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./,:@%";
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

std::string quoted_list(const std::vector<std::string>& names, std::size_t limit) {
  std::string result;
  const bool all = names.size() <= limit + 1;  // never "or 1 others"
  const std::size_t shown = all ? names.size() : limit;
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) result += all && i + 1 == shown ? " or " : ", ";
    result += '"' + names[i] + '"';
  }
  if (!all) result += " or " + std::to_string(names.size() - shown) + " others";
  return result;
}

}  // namespace phasor
