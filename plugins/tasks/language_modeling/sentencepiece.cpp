#include "plugins/tasks/language_modeling/sentencepiece.h"

#include <sentencepiece_processor.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/hash.h"

namespace phasor::language_modeling {

namespace {

using Words = std::vector<std::uint32_t>;

/// Ids of all tokens and the bytes of text that each stands for, boundaries with none.
struct Pieces {
  Words ids, bytes;
};

class PieceCorpus final : public Corpus {
 public:
  /// `memory`: ids, then bytes, of `owner`.
  PieceCorpus(std::shared_ptr<const void> owner, const char* memory, std::int64_t size, std::int32_t boundary)
      : owner_(std::move(owner)), memory_(memory), size_(size), boundary_(boundary) {}
  std::int64_t size() const override { return size_; }
  std::optional<std::int32_t> boundary() const override { return boundary_; }
  void read(std::int64_t first, std::span<std::int32_t> out) const override {
    PHASOR_CHECK(first >= 0 && first + static_cast<std::int64_t>(out.size()) <= size_, "tokens that are there");
    for (std::int32_t& token : out) token = static_cast<std::int32_t>(word(first++));
  }
  std::int64_t boundary_from(std::int64_t position) const override {
    while (position < size_ && word(position) != static_cast<std::uint32_t>(boundary_)) ++position;
    return position;
  }
  std::int64_t text_bytes(std::int64_t first, std::int64_t count) const override {
    std::int64_t bytes = 0;
    for (std::int64_t i = first; i < first + count; ++i) bytes += word(size_ + i);
    return bytes;
  }

 private:
  std::uint32_t word(std::int64_t at) const {
    std::uint32_t value = 0;
    std::memcpy(&value, memory_ + at * static_cast<std::int64_t>(sizeof value), sizeof value);
    return value;
  }
  std::shared_ptr<const void> owner_;
  const char* memory_;
  std::int64_t size_;
  std::int32_t boundary_;
};

/// Bytes that no piece covers, such as white space that the model trims, count with the last piece before them.
Pieces pieces_of(const std::vector<std::string_view>& documents, const sentencepiece::SentencePieceProcessor& model,
                 std::int32_t boundary) {
  Pieces all;
  const auto add = [&](std::int32_t id, std::size_t bytes) {
    all.ids.push_back(static_cast<std::uint32_t>(id));
    all.bytes.push_back(static_cast<std::uint32_t>(bytes));
  };
  add(boundary, 0);
  for (const std::string_view document : documents) {
    const sentencepiece::ImmutableSentencePieceText text = model.EncodeAsImmutableProto(document);
    std::size_t covered = 0;
    for (const auto& piece : text.pieces()) {
      add(static_cast<std::int32_t>(piece.id()), piece.surface().size());
      covered += piece.surface().size();
    }
    all.bytes.back() += static_cast<std::uint32_t>(document.size() - covered);
    add(boundary, 0);
  }
  return all;
}

std::string cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) return cache + "/phasor";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/phasor";
}

/// Other processes may write the same file: it is written aside and renamed. Whether it is there now.
bool keep(const Pieces& pieces, const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  const std::string aside = path + "." + std::to_string(::getpid());
  {
    std::ofstream file(aside, std::ios::binary);
    for (const Words* words : {&pieces.ids, &pieces.bytes})
      file.write(reinterpret_cast<const char*>(words->data()), static_cast<std::streamsize>(words->size() * sizeof(std::uint32_t)));
    file.flush();
    if (!file) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) std::filesystem::rename(aside, path, error);
  if (!error) return true;
  std::error_code ignored;
  std::filesystem::remove(aside, ignored);
  return false;
}

/// Of what the ids are made from; the first word changes with the form of the file.
std::string name_of(const std::vector<std::string_view>& documents, const MappedFile& model) {
  ContentHash hash;
  hash.update_text("pieces 1");
  hash.update_text(model.bytes());
  for (const std::string_view document : documents) hash.update_text(document);
  return hash.hex() + ".pieces";
}

std::shared_ptr<const Corpus> open_cache(const std::string& path, std::int32_t boundary) {
  const auto file = std::make_shared<const MappedFile>(path);
  return std::make_shared<PieceCorpus>(file, file->bytes().data(), static_cast<std::int64_t>(file->bytes().size() / 8), boundary);
}

}  // namespace

bool has_sentencepiece() { return true; }

std::shared_ptr<const Corpus> make_piece_corpus(const Files& texts, const std::string& separator, const MappedFile& model,
                                                std::int64_t vocabulary) {
  sentencepiece::SentencePieceProcessor processor;
  if (const auto status = processor.LoadFromSerializedProto(model.bytes()); !status.ok())
    throw UserError(model.path() + ": found no SentencePiece model, expected one: " + status.ToString());
  if (processor.GetPieceSize() != vocabulary)
    throw UserError(model.path() + ": found " + std::to_string(processor.GetPieceSize()) + " pieces, expected vocabulary, " +
                    std::to_string(vocabulary));
  const std::int32_t boundary = processor.bos_id() >= 0 ? processor.bos_id() : processor.eos_id();
  if (boundary < 0) throw UserError(model.path() + ": found neither <s> nor </s>, expected one of them to stand between documents");
  const std::vector<std::string_view> documents = documents_of(texts, separator);
  const std::string folder = cache_folder(), path = folder + "/" + name_of(documents, model);
  if (!folder.empty() && ::access(path.c_str(), R_OK) == 0) return open_cache(path, boundary);
  const Pieces pieces = pieces_of(documents, processor, boundary);
  if (!folder.empty() && keep(pieces, path)) return open_cache(path, boundary);
  const auto words = std::make_shared<Words>(pieces.ids);
  words->insert(words->end(), pieces.bytes.begin(), pieces.bytes.end());
  return std::make_shared<PieceCorpus>(words, reinterpret_cast<const char*>(words->data()), static_cast<std::int64_t>(pieces.ids.size()), boundary);
}

}  // namespace phasor::language_modeling
