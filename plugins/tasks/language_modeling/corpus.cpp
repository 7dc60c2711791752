#include "plugins/tasks/language_modeling/corpus.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/base/error.h"

namespace phasor::language_modeling {

namespace {

/// The last of ascending positions that is at most `position`.
std::size_t last_at_most(const std::vector<std::int64_t>& positions, std::int64_t position) {
  return static_cast<std::size_t>(std::upper_bound(positions.begin(), positions.end(), position) - positions.begin()) - 1;
}

}  // namespace

std::vector<std::string_view> documents_of(const Files& files, const std::string& separator) {
  std::vector<std::string_view> documents;
  const auto add = [&](std::string_view text) {
    if (!text.empty()) documents.push_back(text);
  };
  for (const auto& file : files) {
    std::string_view rest = file->bytes();
    while (!separator.empty()) {
      const std::size_t end = rest.find(separator);
      if (end == std::string_view::npos) break;
      add(rest.substr(0, end));
      rest.remove_prefix(end + separator.size());
    }
    add(rest);
  }
  return documents;
}

ByteCorpus::ByteCorpus(Files files, const std::string& separator)
    : files_(std::move(files)), documents_(documents_of(files_, separator)) {
  for (const std::string_view document : documents_) {
    begins_.push_back(size_);
    size_ += 1 + static_cast<std::int64_t>(document.size());
  }
  begins_.push_back(size_++);  // the end of the last one
}

std::size_t ByteCorpus::document_at(std::int64_t position) const { return last_at_most(begins_, position); }

void ByteCorpus::read(std::int64_t first, std::span<std::int32_t> out) const {
  PHASOR_CHECK(first >= 0 && first + static_cast<std::int64_t>(out.size()) <= size_, "tokens that are there");
  std::size_t at = 0;
  for (std::size_t d = document_at(first); at < out.size(); ++d) {
    std::int64_t skipped = first + static_cast<std::int64_t>(at) - begins_[d];
    if (skipped == 0) {
      out[at++] = boundary_token;
      skipped = 1;
    }
    if (d == documents_.size()) continue;
    const std::string_view text = documents_[d].substr(static_cast<std::size_t>(skipped - 1), out.size() - at);
    for (const char c : text) out[at++] = static_cast<unsigned char>(c);
  }
}

std::int64_t ByteCorpus::boundary_from(std::int64_t position) const {
  const auto found = std::lower_bound(begins_.begin(), begins_.end(), position);
  return found == begins_.end() ? size_ : *found;
}

/// Every token is a byte, but for the boundaries.
std::int64_t ByteCorpus::text_bytes(std::int64_t first, std::int64_t count) const {
  const auto from = std::lower_bound(begins_.begin(), begins_.end(), first);
  return count - (std::lower_bound(from, begins_.end(), first + count) - from);
}

TokenCorpus::TokenCorpus(Files files, const Form& form) : files_(std::move(files)), form_(form) {
  const auto boundary = [&](const MappedFile& file, std::int64_t at) {
    return tokens_of(file) > 0 && static_cast<std::int64_t>(token(file, at)) == form_.end_of_document;
  };
  if (form_.end_of_document && !files_.empty() && !boundary(*files_.front(), 0)) ++size_;
  for (const auto& file : files_) {
    const auto bytes = static_cast<std::int64_t>(file->bytes().size());
    if (bytes % form_.width != 0)
      throw UserError(file->path() + ": found " + std::to_string(bytes) + " bytes, expected a multiple of " +
                      std::to_string(form_.width) + ": it is cut, or its tokens are of another width");
    if (files_.size() > 1 && !boundary(*file, tokens_of(*file) - 1))
      throw UserError(file->path() + ": its last token is no end_of_document; expected that of every one of several files, or "
                                     "else a single file");
    begins_.push_back(size_);
    size_ += tokens_of(*file);
  }
}

std::uint32_t TokenCorpus::token(const MappedFile& file, std::int64_t at) const {
  std::uint32_t value = 0;
  const char* bytes = file.bytes().data() + at * form_.width;
  for (std::int64_t i = form_.width; i-- > 0;) value = value << 8U | static_cast<unsigned char>(bytes[i]);
  return value;
}

void TokenCorpus::read(std::int64_t first, std::span<std::int32_t> out) const {
  PHASOR_CHECK(first >= 0 && first + static_cast<std::int64_t>(out.size()) <= size_, "tokens that are there");
  std::size_t at = 0;
  if (at < out.size() && first < begins_.front()) out[at++] = *form_.end_of_document;
  while (at < out.size()) {
    const std::int64_t position = first + static_cast<std::int64_t>(at);
    const std::size_t f = last_at_most(begins_, position);
    const MappedFile& file = *files_[f];
    for (std::int64_t i = position - begins_[f]; i < tokens_of(file) && at < out.size(); ++i) {
      const std::uint32_t value = token(file, i);
      if (value >= form_.vocabulary)
        throw UserError(file.path() + ": found token " + std::to_string(value) + " at byte " + std::to_string(i * form_.width) +
                        ", expected ids below vocabulary, " + std::to_string(form_.vocabulary));
      out[at++] = static_cast<std::int32_t>(value);
    }
  }
}

std::int64_t TokenCorpus::boundary_from(std::int64_t position) const {
  if (!form_.end_of_document) return size_;
  if (position < begins_.front()) return position;
  for (std::int64_t at = position; at < size_;) {
    const std::size_t f = last_at_most(begins_, at);
    for (std::int64_t i = at - begins_[f]; i < tokens_of(*files_[f]); ++i, ++at)
      if (static_cast<std::int64_t>(token(*files_[f], i)) == *form_.end_of_document) return at;
  }
  return size_;
}

}  // namespace phasor::language_modeling
