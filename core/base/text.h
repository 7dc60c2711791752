#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phasor {

/// Offset of the first byte that is not well-formed UTF-8 (overlong forms and surrogates are not), or nothing.
std::optional<std::size_t> find_bad_utf8(std::string_view text);

/// Appends a code point as UTF-8.
void append_utf8(std::string& text, char32_t code);

/// Number of insertions, deletions, replacements and swaps of neighbours that lead from one word to the other.
std::size_t edit_distance(std::string_view from, std::string_view to);

/// Lower case with '_' for '-' and ' ': names that differ only there are taken for each other in a suggestion.
std::string folded(std::string_view name);

/// The candidate a mistyped `word` most likely means, or nothing when none is near.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

/// Words as a line that a shell reads as these words again: those with spaces and the like in single quotes.
std::string shell_words(const std::vector<std::string>& words);

/// `"a", "b" or "c"`; after `limit` names, `"a", "b" or 7 others`.
std::string quoted_list(const std::vector<std::string>& names, std::size_t limit = 12);

}  // namespace phasor
