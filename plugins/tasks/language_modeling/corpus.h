#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/tasks/language_modeling/files.h"

namespace phasor::language_modeling {

/// Tokens one after the other, documents between boundary tokens: [B] d d d B d d B. The boundary both ends a document,
/// where it is predicted, and begins the next, where it is read: nothing else is known across it.
class Corpus {
 public:
  virtual ~Corpus() = default;
  virtual std::int64_t size() const = 0;  // tokens, boundaries too
  /// The token of boundaries, or nothing: where documents end is not known.
  virtual std::optional<std::int32_t> boundary() const = 0;
  /// Copies `out.size()` tokens from position `first` on, which must be there. UserError for a token that is not in the
  /// vocabulary.
  virtual void read(std::int64_t first, std::span<std::int32_t> out) const = 0;
  /// Position of the first boundary at or after `position`; size() when there is none.
  virtual std::int64_t boundary_from(std::int64_t position) const = 0;
  /// How many bytes of the documents' text `count` tokens from `first` on stand for, a boundary for none; 0 = not known.
  virtual std::int64_t text_bytes(std::int64_t first, std::int64_t count) const = 0;
};

/// Texts of the documents of files: a file ends one, and so does every `separator` (empty: none), which is no part of either. Without
/// empty ones.
std::vector<std::string_view> documents_of(const Files& files, const std::string& separator);

/// Text as bytes: tokens 0 .. 255, and 256 at boundaries, before the first document and after every one.
class ByteCorpus final : public Corpus {
 public:
  static constexpr std::int32_t boundary_token = 256;
  ByteCorpus(Files files, const std::string& separator);
  std::int64_t size() const override { return size_; }
  std::optional<std::int32_t> boundary() const override { return boundary_token; }
  void read(std::int64_t first, std::span<std::int32_t> out) const override;
  std::int64_t boundary_from(std::int64_t position) const override;
  std::int64_t text_bytes(std::int64_t first, std::int64_t count) const override;

 private:
  std::size_t document_at(std::int64_t position) const;  // at whose boundary or in whose text the position is
  Files files_;
  std::vector<std::string_view> documents_;
  std::vector<std::int64_t> begins_;  // positions of the boundaries before the documents
  std::int64_t size_ = 0;
};

/// Files of unsigned integers of 2 or 4 bytes, little endian, one after the other. With an end of documents a boundary is put in
/// front unless the first token is one.
class TokenCorpus final : public Corpus {
 public:
  struct Form {
    std::int64_t width = 2;  // bytes per token
    std::int64_t vocabulary = 0;
    std::optional<std::int32_t> end_of_document;
  };
  /// UserError for a file that is cut within a token.
  TokenCorpus(Files files, const Form& form);
  std::int64_t size() const override { return size_; }
  std::optional<std::int32_t> boundary() const override { return form_.end_of_document; }
  void read(std::int64_t first, std::span<std::int32_t> out) const override;
  std::int64_t boundary_from(std::int64_t position) const override;
  std::int64_t text_bytes(std::int64_t, std::int64_t) const override { return 0; }

 private:
  /// The token at `at` of a file, as it stands there.
  std::uint32_t token(const MappedFile& file, std::int64_t at) const;
  std::int64_t tokens_of(const MappedFile& file) const { return static_cast<std::int64_t>(file.bytes().size()) / form_.width; }

  Files files_;
  Form form_;
  std::vector<std::int64_t> begins_;  // position of the first token of every file
  std::int64_t size_ = 0;
};

}  // namespace phasor::language_modeling
