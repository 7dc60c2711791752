#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "plugins/tasks/language_modeling/corpus.h"

namespace phasor::language_modeling {

/// Whether this build knows the format.
bool has_sentencepiece();

/// Texts in the pieces of a SentencePiece model, each document by itself; at boundaries its <s>, or </s> where it has none.
/// Made once: the ids are kept in $XDG_CACHE_HOME/phasor (or ~/.cache/phasor), one file per content of model and texts, and in
/// memory only where that cannot be written. UserError for a model that cannot be read or has another number of pieces.
std::shared_ptr<const Corpus> make_piece_corpus(const Files& texts, const std::string& separator, const MappedFile& model,
                                                std::int64_t vocabulary);

}  // namespace phasor::language_modeling
