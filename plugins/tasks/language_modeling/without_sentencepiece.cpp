#include "core/base/error.h"
#include "plugins/tasks/language_modeling/sentencepiece.h"

namespace phasor::language_modeling {

bool has_sentencepiece() { return false; }

std::shared_ptr<const Corpus> make_piece_corpus(const Files&, const std::string&, const MappedFile&, std::int64_t) {
  PHASOR_CHECK(false, "the format is refused before");
  return nullptr;
}

}  // namespace phasor::language_modeling
