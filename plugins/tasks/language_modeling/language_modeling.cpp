#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/nn/splits.h"
#include "core/plugin/manifest.h"
#include "plugins/tasks/language_modeling/corpus.h"
#include "plugins/tasks/language_modeling/files.h"
#include "plugins/tasks/language_modeling/sentencepiece.h"

namespace phasor::language_modeling {
namespace {

const Range length_range = Range::between(2.0, 16777216.0);
const Range tokens_range = Range::between(2.0, 1e15);

struct TrainOptions {
  std::int64_t length = 256;
  std::optional<std::int64_t> tokens;
  void fields(FieldList& f) {
    f.integer("length", length, "tokens per row", length_range);
    f.integer("tokens", tokens, "of the split from its beginning, at most; not set: all", tokens_range);
  }
};

struct EvaluationOptions {
  std::string path;
  double share = 0.05;
  std::vector<std::int64_t> lengths = {256};
  std::vector<std::int64_t> positions;
  std::optional<std::int64_t> tokens;
  void fields(FieldList& f) {
    f.text("path", path, "files of this split, as task.path; empty: a share of those of training");
    f.number("share", share, "of the tokens of task.path, cut at a document's end: valid and test are its last ones",
             Range{0.0, 1.0, true, true});
    f.integers("lengths", lengths, "tokens per row; all lengths score the same tokens, each once", length_range);
    f.integers("positions", positions,
               "last positions of ranges whose loss is reported, within documents of the rows of the largest length; empty: "
               "16, 32, 64 .. and that length",
               Range::between(1.0, length_range.high));
    f.integer("tokens", tokens, "of the split from its beginning, at most; not set: all", tokens_range);
  }
};

/// Where a split stands in its corpus: tokens first .. last-1, of which all but the first are targets.
struct Part {
  std::shared_ptr<const Corpus> corpus;
  std::int64_t first = 0, last = 0;
  std::int64_t targets() const { return std::max<std::int64_t>(0, last - first - 1); }
};

/// Language modelling: the next token of a text. Tokens of documents and of the boundaries between them follow each other
/// (plugins/tasks/language_modeling/corpus.h); row i of length T reads tokens iT .. iT+T-1 of its split and predicts the
/// ones after them. So rows do not overlap, every token but the first of a split is predicted exactly once whatever the
/// length, and the last row is filled up with tokens that are not scored. Documents are packed back to back and go on in the
/// next row, where nothing is known of the row before.
///
/// The boundary token is what the last token of a document predicts and the first of the next one is predicted from; with
/// `separate` a document begins there, and nothing else passes. Splits are ranges of whole documents, which have that
/// token in common; a corpus of one document is cut anywhere. Rows do not depend on the seed: only their order does.
///
/// Other than the reference (Selective RoPE's repository): documents do not see each other (`separate` false is as
/// there), held-out rows are other documents (there they are what follows the last training row, miscounted on several
/// devices), and every token is scored (there the first of every row is not).
class LanguageModeling final : public Task {
 public:
  struct Options {
    std::string format = "bytes", path, model, content, separator;
    std::optional<std::int64_t> vocabulary, end_of_document;
    bool separate = true;
    TrainOptions train;
    EvaluationOptions valid, test;
    void fields(FieldList& f);
    void resolve();
  };

  static std::optional<std::string> refuses(const Options& options);
  explicit LanguageModeling(const Options& options);

  std::int64_t vocabulary() const override { return vocabulary_; }
  bool packs() const override { return options_.separate; }
  std::vector<Slice> slices(Split split) const override;
  std::int64_t tokens(const Slice& slice) const override { return slice.length; }
  std::int64_t max_targets(const Slice& slice) const override { return slice.length; }
  double chance() const override { return 1.0 / static_cast<double>(vocabulary_); }
  std::string label() const override { return options_.format; }
  bool text() const override { return true; }
  std::int64_t text_bytes(const Slice& slice, std::int64_t index) const override;
  std::vector<std::int64_t> position_ends(const Slice& slice) const override;
  std::optional<std::string> missing() const override { return missing_; }
  void sample(const Slice& slice, std::uint64_t seed, std::int64_t index, Sample row) const override;
  std::vector<Unit> units(const Slice& slice, const Sample& row) const override;

 private:
  const Part& part(Split split) const { return parts_[static_cast<std::size_t>(split)]; }
  void divide(const std::shared_ptr<const Corpus>& corpus);

  Options options_;
  std::int64_t vocabulary_;
  std::optional<std::string> missing_;
  std::array<Part, 3> parts_;  // by Split
};

void LanguageModeling::Options::fields(FieldList& f) {
  f.choice("format", format, {"bytes", "sentencepiece", "uint16", "uint32"},
           "bytes: text, a token per byte; sentencepiece: text in the pieces of a model; uint16, uint32: token ids in little "
           "endian, without a header");
  f.text("path", path, "a file, or several by a pattern such as texts/*.txt, in the order of their names");
  f.text("model", model, "of sentencepiece: the file of the model");
  f.text("content", content,
         "hash of all files of the experiment, which must have it; empty: that of the files as they are found. Part of "
         "the trial's identity");
  f.text("separator", separator, "text that ends a document within a file, and is no part of it; empty: files are documents");
  f.integer("vocabulary", vocabulary, "of token files and models: how many ids there are", Range::between(2.0, 2147483647.0));
  f.integer("end_of_document", end_of_document, "of token files: the id that ends a document; not set: not known",
            Range::between(0.0, 2147483646.0));
  f.boolean("separate", separate, "documents of a row do not see each other; false as the reference: state runs on");
  f.object("train", train, "training data");
  f.object("valid", valid, "data that choices are made on");
  f.object("test", test, "data that is reported");
}

/// The paths of one split, or of all where it has none of its own.
struct Paths {
  std::vector<std::string> main, valid, test, model;
  std::optional<std::string> missing;
};

Paths find_all(const LanguageModeling::Options& options) {
  Paths paths;
  const auto find = [&](const std::string& pattern) {
    std::vector<std::string> found = pattern.empty() ? std::vector<std::string>() : find_paths(pattern);
    if (!pattern.empty() && found.empty() && !paths.missing)
      paths.missing = "found no file " + pattern + ", expected the data there; the experiment's note may say where they come from";
    return found;
  };
  paths.main = find(options.path);
  paths.valid = find(options.valid.path);
  paths.test = find(options.test.path);
  paths.model = find(options.model);
  return paths;
}

std::string content_of_all(const Paths& paths) {
  std::vector<std::string> all = paths.main;
  all.insert(all.end(), paths.valid.begin(), paths.valid.end());
  all.insert(all.end(), paths.test.begin(), paths.test.end());
  all.insert(all.end(), paths.model.begin(), paths.model.end());
  return content_of(open_files(all));
}

void LanguageModeling::Options::resolve() {
  const Paths paths = find_all(*this);
  if (!paths.missing && content.empty()) content = content_of_all(paths);
}

std::optional<std::string> refuses_evaluation(const char* split, const EvaluationOptions& options) {
  const auto check = [&](const char* name, std::vector<std::int64_t> values) -> std::optional<std::string> {
    std::sort(values.begin(), values.end());
    const auto twice = std::adjacent_find(values.begin(), values.end());
    if (twice == values.end()) return std::nullopt;
    return std::string(split) + "." + name + ": found " + std::to_string(*twice) + " twice, expected each once";
  };
  if (options.lengths.empty()) return std::string(split) + ".lengths: found an empty list, expected at least one length";
  if (auto reason = check("lengths", options.lengths)) return reason;
  return check("positions", options.positions);
}

std::optional<std::string> refuses_format(const LanguageModeling::Options& options) {
  if (options.format != "sentencepiece" && !options.model.empty()) return "model: found one with " + options.format + ", expected sentencepiece";
  if (options.format == "bytes") {
    if (options.vocabulary) return "vocabulary: found " + std::to_string(*options.vocabulary) + " with bytes, expected none: it is 257";
    if (options.end_of_document) return "end_of_document: found one with bytes, expected none: give a separator";
    return std::nullopt;
  }
  if (!options.vocabulary) return "vocabulary: none is given, expected how many token ids there are";
  if (options.format == "sentencepiece") {
    if (!has_sentencepiece()) return "format: this build knows no sentencepiece; install libsentencepiece-dev and build again";
    if (options.model.empty()) return "model: none is given, expected the file of a SentencePiece model";
    if (options.end_of_document) return "end_of_document: found one with sentencepiece, expected none: the model has its own";
    return std::nullopt;
  }
  if (!options.separator.empty()) return "separator: found one with token ids, expected none: give end_of_document";
  if (options.end_of_document && *options.end_of_document >= *options.vocabulary)
    return "end_of_document: found " + std::to_string(*options.end_of_document) + ", expected an id below vocabulary, " +
           std::to_string(*options.vocabulary);
  return std::nullopt;
}

/// Of files that are in two splits.
std::optional<std::string> refuses_shared(const Paths& paths) {
  const auto shared = [](const std::vector<std::string>& a, const std::vector<std::string>& b) {
    return std::find_first_of(a.begin(), a.end(), b.begin(), b.end()) != a.end();
  };
  if (shared(paths.main, paths.valid)) return "valid.path: found a file that path has too, expected others";
  if (shared(paths.main, paths.test)) return "test.path: found a file that path has too, expected others";
  if (shared(paths.valid, paths.test)) return "test.path: found a file that valid.path has too, expected others";
  return std::nullopt;
}

std::optional<std::string> LanguageModeling::refuses(const Options& options) {
  if (options.path.empty()) return "path: none is given, expected a file or a pattern such as texts/*.txt";
  if (auto reason = refuses_format(options)) return reason;
  if (auto reason = refuses_evaluation("valid", options.valid)) return reason;
  if (auto reason = refuses_evaluation("test", options.test)) return reason;
  const Paths paths = find_all(options);
  if (paths.missing) return std::nullopt;  // shapes are known all the same
  if (auto reason = refuses_shared(paths)) return reason;
  try {
    const std::string found = content_of_all(paths);
    if (!options.content.empty() && options.content != found)
      return "content: found files with " + found + ", expected " + options.content +
             ": they are not those that the experiment was made with; remove it to take these";
    const LanguageModeling task(options);
    for (const Split split : {Split::train, Split::valid, Split::test})
      if (task.part(split).targets() == 0)
        return std::string(to_text(split)) + ": found no token for it in " + options.path +
               ", expected more documents, other shares, or a path of its own";
  } catch (const UserError& error) {
    return error.what();
  }
  return std::nullopt;
}

std::shared_ptr<const Corpus> corpus_of(const LanguageModeling::Options& options, const std::vector<std::string>& paths) {
  Files files = open_files(paths);
  if (options.format == "sentencepiece") return make_piece_corpus(files, options.separator, MappedFile(options.model), *options.vocabulary);
  if (options.format == "bytes") return std::make_shared<ByteCorpus>(std::move(files), options.separator);
  TokenCorpus::Form form{options.format == "uint16" ? 2 : 4, *options.vocabulary, std::nullopt};
  if (options.end_of_document) form.end_of_document = static_cast<std::int32_t>(*options.end_of_document);
  return std::make_shared<TokenCorpus>(std::move(files), form);
}

LanguageModeling::LanguageModeling(const Options& options)
    : options_(options), vocabulary_(options.vocabulary.value_or(ByteCorpus::boundary_token + 1)) {
  const Paths paths = find_all(options);
  missing_ = paths.missing;
  if (missing_) return;
  divide(corpus_of(options, paths.main));
  const auto own = [&](Split split, const std::vector<std::string>& files) {
    if (files.empty()) return;
    const auto corpus = corpus_of(options, files);
    parts_[static_cast<std::size_t>(split)] = {corpus, 0, corpus->size()};
  };
  own(Split::valid, paths.valid);
  own(Split::test, paths.test);
  const auto limit = [&](Split split, std::optional<std::int64_t> targets) {
    Part& part = parts_[static_cast<std::size_t>(split)];
    if (targets) part.last = std::min(part.last, part.first + 1 + *targets);
  };
  limit(Split::train, options.train.tokens);
  limit(Split::valid, options.valid.tokens);
  limit(Split::test, options.test.tokens);
}

/// Train, valid and test one after the other. Neighbours have the boundary between them in common, and nothing where the
/// corpus is a single document.
void LanguageModeling::divide(const std::shared_ptr<const Corpus>& corpus) {
  const std::int64_t size = corpus->size();
  const double valid = options_.valid.path.empty() ? options_.valid.share : 0.0;
  const double test = options_.test.path.empty() ? options_.test.share : 0.0;
  const bool one_document = corpus->boundary_from(1) >= size - 1;
  const auto cut = [&](double share) {
    if (share <= 0.0) return one_document ? size : size - 1;
    const auto wanted = static_cast<std::int64_t>(std::ceil(static_cast<double>(size) * std::max(0.0, 1.0 - share)));
    return one_document ? wanted : std::min(corpus->boundary_from(wanted), size - 1);
  };
  const std::int64_t common = one_document ? 0 : 1;
  const std::int64_t first_cut = cut(valid + test), second_cut = std::max(first_cut, cut(test));
  parts_[0] = {corpus, 0, std::min(size, first_cut + common)};
  parts_[1] = {corpus, first_cut, std::min(size, second_cut + common)};
  parts_[2] = {corpus, second_cut, size};
}

std::vector<Slice> LanguageModeling::slices(Split split) const {
  const auto rows = [&](std::int64_t length) { return (part(split).targets() + length - 1) / length; };
  if (split == Split::train) return {{split, options_.train.length, rows(options_.train.length)}};
  std::vector<Slice> all;
  for (const std::int64_t length : (split == Split::valid ? options_.valid : options_.test).lengths)
    all.push_back({split, length, rows(length), static_cast<std::int64_t>(all.size())});
  return all;
}

std::int64_t LanguageModeling::text_bytes(const Slice& slice, std::int64_t index) const {
  const Part& here = part(slice.split);
  const std::int64_t first = here.first + index * slice.length + 1;
  return here.corpus->text_bytes(first, std::min(slice.length, here.last - first));
}

std::vector<std::int64_t> LanguageModeling::position_ends(const Slice& slice) const {
  if (slice.split == Split::train) return {};
  const EvaluationOptions& options = slice.split == Split::valid ? options_.valid : options_.test;
  if (slice.length != *std::max_element(options.lengths.begin(), options.lengths.end())) return {};
  std::vector<std::int64_t> ends = options.positions;
  for (std::int64_t end = 16; ends.size() < 64 && options.positions.empty() && end < slice.length; end *= 2) ends.push_back(end);
  if (options.positions.empty()) ends.push_back(slice.length);
  std::sort(ends.begin(), ends.end());
  return ends;
}

void LanguageModeling::sample(const Slice& slice, std::uint64_t, std::int64_t index, Sample row) const {
  const auto count = static_cast<std::size_t>(slice.length);
  PHASOR_CHECK(row.tokens.size() == count && row.targets.size() == count && row.starts.size() == (packs() ? count : 0),
               "room for a row of language_modeling");
  if (missing_) throw UserError(*missing_);
  const Part& here = part(slice.split);
  const std::int64_t first = here.first + index * slice.length;
  PHASOR_CHECK(index >= 0 && first + 1 < here.last, "a row that is there");
  const auto there = static_cast<std::size_t>(std::min(slice.length, here.last - 1 - first));
  std::vector<std::int32_t> text(there + 1);
  here.corpus->read(first, text);
  const std::optional<std::int32_t> boundary = here.corpus->boundary();
  std::int32_t start = 0;
  for (std::size_t t = 0; t < count; ++t) {
    row.tokens[t] = t < there ? text[t] : 0;
    row.targets[t] = t < there ? text[t + 1] : -1;
    if (!packs()) continue;
    if (t == there || (t < there && text[t] == boundary)) start = static_cast<std::int32_t>(t);
    row.starts[t] = start;
  }
}

/// Passages that training may show too, wherever they stand in its rows: those whose hash says so, one of 16 on average, of
/// a quarter of a training row and at most 128 tokens. Both splits choose the same ones, so a repeated text is seen at any
/// offset: at least two thirds of its passages, as one that runs over the end of a row is not there.
std::vector<Unit> LanguageModeling::units(const Slice&, const Sample& row) const {
  const auto width = static_cast<std::size_t>(std::min<std::int64_t>(128, (options_.train.length + 3) / 4));
  const auto last_target = std::find_if(row.targets.rbegin(), row.targets.rend(), [](std::int32_t t) { return t >= 0; });
  const auto count = static_cast<std::size_t>(row.targets.rend() - last_target);
  constexpr std::uint64_t base = 0x9E3779B97F4A7C15U;
  std::uint64_t leaving = 1, hash = 0;  // base^width
  for (std::size_t i = 0; i < width; ++i) leaving *= base;
  const double space = static_cast<double>(width) * std::log2(static_cast<double>(vocabulary_));
  std::vector<Unit> all;
  for (std::size_t t = 0; t < count; ++t) {
    hash = hash * base + static_cast<std::uint64_t>(row.tokens[t]) + 1;
    if (t >= width) hash -= leaving * (static_cast<std::uint64_t>(row.tokens[t - width]) + 1);
    const std::uint64_t mixed = mix64(hash);
    if (t + 1 >= width && mixed % 16 == 0) all.push_back({mixed, space, false});
  }
  return all;
}

}  // namespace
}  // namespace phasor::language_modeling

PHASOR_PLUGIN("language_modeling", "1.0", [](phasor::Registry& registry) {
  registry.task<phasor::language_modeling::LanguageModeling>("language_modeling", 1, "the next token of a text");
})
