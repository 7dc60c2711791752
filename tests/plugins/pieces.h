#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace phasor::test {

/// Whether the library was found when this was built; the others do nothing without it.
bool has_pieces();

/// Writes a SentencePiece model of so many pieces, trained on the lines of a text.
void train_pieces(const std::string& text, const std::string& model, int pieces);

/// Ids of the documents of a text, `boundary` before the first and after each. Asked of the library directly.
std::vector<std::int32_t> piece_ids(const std::string& model, const std::string& text, char separator, std::int32_t boundary);

}  // namespace phasor::test
