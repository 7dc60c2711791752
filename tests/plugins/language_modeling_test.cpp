#include <cstdint>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

#include "tests/plugins/pieces.h"
#include "tests/plugins/task_rows.h"

namespace phasor {
namespace {

using test::MadeRow;
using test::make_row;
using test::Row;

constexpr std::int32_t boundary = 256;

/// Files of a test, in a folder of its own that goes with it.
class LanguageModelingTest : public test::TaskPluginTest {
 protected:
  LanguageModelingTest()
      : TaskPluginTest("language_modeling"), folder_(testing::TempDir() + "phasor_text_" + std::to_string(::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~LanguageModelingTest() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  template <class Word>
  std::string write_tokens(const std::string& name, const Row& tokens) const {
    std::string bytes;
    for (const std::int32_t token : tokens)
      for (std::size_t i = 0; i < sizeof(Word); ++i)
        bytes.push_back(static_cast<char>(static_cast<std::uint32_t>(token) >> 8 * i & 255U));
    return write(name, bytes);
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  /// Options with this path and more.
  std::string with(const std::string& name, const std::string& more) const {
    return R"({"path": ")" + path(name) + "\"" + (more.empty() ? "" : ", " + more) + "}";
  }
  std::unique_ptr<Task> task(const std::string& name, const std::string& more) const { return make(with(name, more)); }
  std::string refused(const std::string& name, const std::string& more = "") const { return refusal(with(name, more)); }

  std::string folder_;
};

Row bytes_of(const std::string& text) {
  Row row;
  for (const char c : text) row.push_back(c == '#' ? boundary : static_cast<unsigned char>(c));
  return row;
}

/// All targets of a slice, in order, and all inputs that have one.
struct Read {
  Row inputs, targets;
};
Read read(const Task& task, const Slice& slice) {
  Read all;
  for (std::int64_t i = 0; i < slice.rows; ++i) {
    const MadeRow row = make_row(task, slice, 7, i);
    for (std::size_t t = 0; t < row.tokens.size(); ++t) {
      if (row.targets[t] < 0) continue;
      all.inputs.push_back(row.tokens[t]);
      all.targets.push_back(row.targets[t]);
    }
  }
  return all;
}

/// A text of numbered sentences, so that no passage comes twice: documents of 20 to 400 bytes.
std::string story(int documents, const std::string& separator) {
  std::string text;
  for (int d = 0; d < documents; ++d) {
    if (d > 0) text += separator;
    for (int s = 0; s <= d * 7 % 11; ++s) text += "In " + std::to_string(1000 * d + s) + " nothing of note was done. ";
  }
  return text;
}

TEST_F(LanguageModelingTest, RowsByHand) {
  write("a.txt", "abc--de--fghij");
  const auto made = task("a.txt", R"("separator": "--", "train": {"length": 4}, "valid": {"share": 0.2, "lengths": [4]},
                                     "test": {"share": 0.55, "lengths": [2, 7]})");
  const auto rows = [&](Split split, std::size_t slice) {
    std::vector<MadeRow> all;
    for (std::int64_t i = 0; i < made->slices(split)[slice].rows; ++i) all.push_back(make_row(*made, made->slices(split)[slice], 0, i));
    return all;
  };
  using Rows = std::vector<MadeRow>;
  EXPECT_EQ(rows(Split::train, 0), (Rows{{bytes_of("#abc"), bytes_of("abc#"), {0, 0, 0, 0}}}));
  EXPECT_EQ(rows(Split::valid, 0), (Rows{{{boundary, 'd', 'e', 0}, {'d', 'e', boundary, -1}, {0, 0, 0, 3}}}));
  EXPECT_EQ(rows(Split::test, 0), (Rows{{bytes_of("#f"), bytes_of("fg"), {0, 0}},
                                       {bytes_of("gh"), bytes_of("hi"), {0, 0}},
                                       {bytes_of("ij"), bytes_of("j#"), {0, 0}}}));
  EXPECT_EQ(rows(Split::test, 1), (Rows{{{boundary, 'f', 'g', 'h', 'i', 'j', 0}, {'f', 'g', 'h', 'i', 'j', boundary, -1}, {0, 0, 0, 0, 0, 0, 6}}}));
}

TEST_F(LanguageModelingTest, EveryTokenIsPredictedOnceWhateverTheLength) {
  write("text", story(40, "\n--\n"));
  const auto made = task("text", R"("separator": "\n--\n", "train": {"length": 33}, "valid": {"share": 0.2, "lengths": [7, 64, 5000]},
                                    "test": {"share": 0.1, "lengths": [16, 100]})");
  std::vector<Row> splits;
  for (const Split split : {Split::train, Split::valid, Split::test}) {
    Row first;
    for (const Slice& slice : made->slices(split)) {
      const Read all = read(*made, slice);
      if (first.empty()) first = all.targets;
      EXPECT_EQ(all.targets, first) << to_text(split) << " " << slice.length;
      // Inputs are what stands one before.
      ASSERT_EQ(all.inputs.size(), all.targets.size());
      EXPECT_EQ(all.inputs.front(), boundary);
      EXPECT_TRUE(std::equal(all.inputs.begin() + 1, all.inputs.end(), all.targets.begin()));
      EXPECT_EQ(all.targets.back(), boundary) << "a split ends with a document";
    }
    splits.push_back(first);
  }
  // One after the other they are the text: nothing is lost, nothing is in two.
  Row joined;
  for (const Row& split : splits) joined.insert(joined.end(), split.begin(), split.end());
  std::string expected = story(40, "#");
  EXPECT_EQ(joined, bytes_of(expected + "#"));
  const double share = static_cast<double>(splits[1].size()) / static_cast<double>(joined.size());
  EXPECT_NEAR(share, 0.2, 0.05);
}

TEST_F(LanguageModelingTest, StartsAreDocuments) {
  write("text", story(40, "|"));
  const auto made = task("text", R"("separator": "|", "train": {"length": 100})");
  const Slice slice = made->slices(Split::train).front();
  ASSERT_TRUE(made->packs());
  bool inside = false;
  for (std::int64_t i = 0; i < slice.rows; ++i) {
    const MadeRow row = make_row(*made, slice, 0, i);
    std::int32_t start = 0;
    for (std::size_t t = 0; t < row.tokens.size() && row.targets[t] >= 0; ++t) {
      if (row.tokens[t] == boundary) start = static_cast<std::int32_t>(t);
      ASSERT_EQ(row.starts[t], start);
      inside = inside || start > 0;
    }
    test::expect_in_range(*made, slice, row);
  }
  EXPECT_TRUE(inside);
  const auto together = task("text", R"("separator": "|", "separate": false, "train": {"length": 100})");
  EXPECT_FALSE(together->packs());
  MadeRow apart = make_row(*made, slice, 0, 1);
  apart.starts.clear();
  EXPECT_EQ(make_row(*together, slice, 0, 1), apart);
}

TEST_F(LanguageModelingTest, FilesAreDocumentsInTheOrderOfTheirNames) {
  write("b.txt", "second");
  write("a.txt", "first");
  write("c.txt", "third");
  write("d.txt", "");
  write("e.txt", "last");
  const auto made = task("?.txt", R"("valid": {"share": 0.25, "lengths": [3]}, "test": {"share": 0.25, "lengths": [3]})");
  EXPECT_EQ(read(*made, made->slices(Split::train).front()).targets, bytes_of("first#second#"));
  EXPECT_EQ(read(*made, made->slices(Split::valid).front()).targets, bytes_of("third#"));
  EXPECT_EQ(read(*made, made->slices(Split::test).front()).targets, bytes_of("last#"));
}

TEST_F(LanguageModelingTest, SplitsOfFilesOfTheirOwn) {
  write("train", "to learn from");
  write("valid", "to choose by");
  const std::string valid = R"("valid": {"path": ")" + path("valid") + "\"}";
  const auto made = task("train", valid + R"(, "test": {"share": 0.3, "lengths": [5], "tokens": 2})");
  EXPECT_EQ(read(*made, made->slices(Split::valid).front()).targets, bytes_of("to choose by#"));
  // One document is cut anywhere: 15 tokens with the boundaries, of which the last 4 are for test, and the first of them
  // is only read.
  EXPECT_EQ(read(*made, made->slices(Split::train).front()).targets, bytes_of("to learn f"));
  EXPECT_EQ(read(*made, made->slices(Split::test).front()).targets, bytes_of("om"));
  EXPECT_EQ(refused("train", R"("valid": {"path": ")" + path("tr*n") + "\"}"), "valid.path: found a file that path has too, expected others");
}

TEST_F(LanguageModelingTest, RowsDoNotDependOnTheSeedOrOnThreads) {
  write("text", story(60, "|"));
  const auto made = task("text", R"("separator": "|", "train": {"length": 16})");
  const Slice slice = made->slices(Split::train).front();
  ASSERT_GT(slice.rows, 200);
  const std::string alone = test::hash_of_rows(*made, slice, 1, 200, 0);
  for (const std::size_t workers : {1U, 4U, 7U}) EXPECT_EQ(test::hash_of_rows(*made, slice, 2, 200, workers), alone);
}

TEST_F(LanguageModelingTest, BytesOfTextAreThoseOfTheFiles) {
  const std::string text = story(30, "");
  write("text", story(30, "|"));
  const auto made = task("text", R"("separator": "|", "test": {"share": 0.2, "lengths": [50]})");
  std::int64_t bytes = 0;
  for (const Split split : {Split::train, Split::valid, Split::test})
    for (const Slice& slice : made->slices(split))
      for (std::int64_t i = 0; i < slice.rows; ++i) bytes += made->text_bytes(slice, i);
  EXPECT_EQ(bytes, static_cast<std::int64_t>(text.size()));
  EXPECT_TRUE(made->text());
}

TEST_F(LanguageModelingTest, TokenFilesAreTheSameWhateverTheirWidth) {
  const std::string text = story(40, "#");
  write("text", text);
  write_tokens<std::uint16_t>("t16", bytes_of(text + "#"));
  write_tokens<std::uint32_t>("t32", bytes_of("#" + text + "#"));
  const std::string more = R"("train": {"length": 50}, "test": {"lengths": [20, 300]})", ids = R"(, "vocabulary": 257, "end_of_document": 256)";
  const auto bytes = task("text", more + R"(, "separator": "#")");
  const auto two = task("t16", more + ids + R"(, "format": "uint16")"), four = task("t32", more + ids + R"(, "format": "uint32")");
  for (const Split split : {Split::train, Split::valid, Split::test})
    for (const Slice& slice : bytes->slices(split)) {
      EXPECT_EQ(two->slices(split).back().rows, bytes->slices(split).back().rows);
      const auto count = static_cast<std::size_t>(slice.rows);
      const std::string expected = test::hash_of_rows(*bytes, slice, 0, count, 0);
      EXPECT_EQ(test::hash_of_rows(*two, slice, 0, count, 0), expected);
      EXPECT_EQ(test::hash_of_rows(*four, slice, 0, count, 0), expected);
    }
  EXPECT_EQ(two->text_bytes(two->slices(Split::train).front(), 0), 0) << "not known";
}

TEST_F(LanguageModelingTest, TokensOutsideTheVocabularyNameFileAndOffset) {
  Row tokens(100, 5);
  tokens[70] = 300;
  write_tokens<std::uint16_t>("t16", tokens);
  const auto made = task("t16", R"("format": "uint16", "vocabulary": 300, "train": {"length": 20}, "valid": {"share": 0.1}, "test": {"share": 0.1})");
  const Slice slice = made->slices(Split::train).front();
  EXPECT_NO_THROW(make_row(*made, slice, 0, 2));
  try {
    make_row(*made, slice, 0, 3);
    ADD_FAILURE() << "expected a UserError";
  } catch (const UserError& error) {
    const std::string expected = path("t16") + ": found token 300 at byte 140, expected ids below vocabulary, 300";
    EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
  }
  write("odd", "abc");
  EXPECT_EQ(refused("odd", R"("format": "uint16", "vocabulary": 300)"),
            path("odd") + ": found 3 bytes, expected a multiple of 2: it is cut, or its tokens are of another width");
}

TEST_F(LanguageModelingTest, PiecesAreTheSameAsTheirFile) {
  // Of the build, not of what the task says: a task that lost the format is a failure, no reason to skip.
  if (!test::has_pieces()) GTEST_SKIP() << "built without SentencePiece";
  ASSERT_EQ(refused("none", R"("format": "sentencepiece", "vocabulary": 9, "model": "x")"), "accepted");
  ::setenv("XDG_CACHE_HOME", path("cache").c_str(), 1);
  // Spaces at the end of a document and twice within: the model trims them, their bytes count all the same.
  std::string text = story(40, "|"), documents = story(40, "");
  text.insert(text.find('|'), "two  spaces   ");
  write("text", text);
  test::train_pieces(write("lines", story(40, "\n")), path("model"), 100);
  const std::string more = R"("train": {"length": 24}, "valid": {"share": 0.2, "lengths": [24]}, "test": {"share": 0.2, "lengths": [10, 40]}, "vocabulary": 100)";
  const std::string pieces_options = more + R"(, "format": "sentencepiece", "separator": "|", "model": ")" + path("model") + "\"";
  const auto pieces = task("text", pieces_options);
  EXPECT_EQ(pieces->vocabulary(), 100);
  // The oracle tokenises document by document, with <s> (id 1) between.
  write_tokens<std::uint16_t>("t16", test::piece_ids(path("model"), text, '|', 1));
  write_tokens<std::uint32_t>("t32", test::piece_ids(path("model"), text, '|', 1));
  const auto two = task("t16", more + R"(, "format": "uint16", "end_of_document": 1)"), four = task("t32", more + R"(, "format": "uint32", "end_of_document": 1)");
  const auto again = task("text", pieces_options);  // from the cache
  std::int64_t bytes = 0;
  for (const Split split : {Split::train, Split::valid, Split::test})
    for (const Slice& slice : pieces->slices(split)) {
      const auto count = static_cast<std::size_t>(slice.rows);
      const std::string expected = test::hash_of_rows(*two, slice, 0, count, 0);
      for (const Task* other : {pieces.get(), four.get(), again.get()}) EXPECT_EQ(test::hash_of_rows(*other, slice, 0, count, 0), expected);
      for (std::int64_t i = 0; i < slice.rows && slice.segment == 0; ++i) bytes += again->text_bytes(slice, i);
    }
  EXPECT_EQ(bytes, static_cast<std::int64_t>(documents.size() + std::string("two  spaces   ").size()));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path("cache") + "/phasor"), {}), 1);
  const std::string wrong = refused("text", R"("format": "sentencepiece", "vocabulary": 99, "model": ")" + path("model") + "\"");
  EXPECT_EQ(wrong, path("model") + ": found 100 pieces, expected vocabulary, 99");
  write("model", "no model");
  EXPECT_NE(refused("text", pieces_options).find("found no SentencePiece model"), std::string::npos);
}

TEST_F(LanguageModelingTest, AFileIsReadWhereItIsNeeded) {
  // A file with a hole of 8 GiB: whoever read or copied it as a whole would need a minute and the memory.
  const std::string file = path("large");
  write("large", "");
  std::filesystem::resize_file(file, std::uintmax_t{8} << 30U);
  const auto made = task("large", R"("format": "uint32", "vocabulary": 10, "train": {"length": 64}, "test": {"share": 0.25, "lengths": [64], "tokens": 640})");
  EXPECT_EQ(made->slices(Split::test).front().rows, 10);
  const Slice train = made->slices(Split::train).front();
  EXPECT_NEAR(static_cast<double>(train.rows), 0.7 * static_cast<double>(std::int64_t{1} << 31U) / 64.0, 2.0);
  const MadeRow row = make_row(*made, train, 0, train.rows - 1);
  EXPECT_EQ(row.tokens.front(), 0);
}

TEST_F(LanguageModelingTest, ContentIsPartOfTheIdentity) {
  write("text", story(40, "|"));
  const std::string more = R"("separator": "|")";
  const auto content = [&](const std::string& options) {
    const auto read = test::read_options(plugin_, options);
    read->resolve();
    FieldList fields;
    read->fields(fields);
    return fields.find("content")->get().as_string();
  };
  const std::string before = content(with("text", more));
  EXPECT_EQ(before.size(), 32U);
  EXPECT_EQ(refused("text", more + R"(, "content": ")" + before + "\""), "accepted");
  std::string changed = story(40, "|");
  changed[500] = 'X';
  write("text", changed);
  EXPECT_NE(content(with("text", more)), before);
  const std::string reason = refused("text", more + R"(, "content": ")" + before + "\"");
  EXPECT_NE(reason.find("content: found files with "), std::string::npos) << reason;
  EXPECT_NE(reason.find("expected " + before), std::string::npos) << reason;
}

TEST_F(LanguageModelingTest, WithoutTheFilesShapesAreKnown) {
  EXPECT_EQ(refused("nothing.txt"), "accepted");
  const auto made = task("nothing.txt", R"("train": {"length": 77}, "test": {"lengths": [77, 154]})");
  EXPECT_EQ(made->vocabulary(), 257);
  EXPECT_EQ(made->tokens(made->slices(Split::train).front()), 77);
  ASSERT_TRUE(made->missing().has_value());
  EXPECT_NE(made->missing()->find(path("nothing.txt")), std::string::npos);
  EXPECT_THROW(make_row(*made, made->slices(Split::train).front(), 0, 0), UserError);
  write("text", story(40, ""));
  EXPECT_FALSE(task("text", "")->missing().has_value());
}

TEST_F(LanguageModelingTest, PassagesAreFoundAtAnyOffset) {
  // Valid repeats 4,000 of its 5,000 bytes from training, about half a row further on in its rows, where fewest are found.
  const std::string text = story(60, "");
  write("train", text);
  write("valid", std::string(1000 % 256 + 127, 'x') + text.substr(1000, 4000) + story(90, "").substr(text.size(), 1000));
  write("other", story(200, "").substr(text.size() + 100, 900));
  const std::string own = R"("train": {"length": 256}, "valid": {"lengths": [256], "path": ")";
  const auto shared = [&](const std::string& file) {
    const auto made = task("train", own + path(file) + "\"}");
    const auto all = [](const Unit&) { return true; };
    const Slice train = made->slices(Split::train).front(), valid = made->slices(Split::valid).front();
    const auto units = test::unit_hashes(*made, valid, 0, valid.rows, all);
    EXPECT_GT(units.size(), 5U);
    return static_cast<double>(test::shared(units, test::unit_hashes(*made, train, 0, train.rows, all))) / static_cast<double>(units.size());
  };
  EXPECT_NEAR(shared("valid"), 2.0 / 3.0 * 4.0 / 5.0, 0.12);
  EXPECT_EQ(shared("other"), 0.0);
}

TEST_F(LanguageModelingTest, PositionsBelongToTheLargestLength) {
  write("text", story(60, "|"));
  const auto made = task("text", R"("separator": "|", "test": {"lengths": [100, 40], "positions": [90, 10]})");
  const auto slices = made->slices(Split::test);
  EXPECT_EQ(made->position_ends(slices[0]), (std::vector<std::int64_t>{10, 90}));
  EXPECT_TRUE(made->position_ends(slices[1]).empty());
  EXPECT_EQ(made->position_ends(made->slices(Split::valid).front()), (std::vector<std::int64_t>{16, 32, 64, 128, 256}));
  EXPECT_TRUE(made->position_ends(made->slices(Split::train).front()).empty());
}

TEST_F(LanguageModelingTest, RefusesWithTheReason) {
  write("text", story(40, "|"));
  EXPECT_EQ(refusal("{}"), "path: none is given, expected a file or a pattern such as texts/*.txt");
  EXPECT_EQ(refused("text", R"("vocabulary": 300)"), "vocabulary: found 300 with bytes, expected none: it is 257");
  EXPECT_EQ(refused("text", R"("model": "x")"), "model: found one with bytes, expected sentencepiece");
  EXPECT_EQ(refused("text", R"("format": "uint16")"), "vocabulary: none is given, expected how many token ids there are");
  EXPECT_EQ(refused("text", R"("format": "uint16", "vocabulary": 9, "end_of_document": 9)"),
            "end_of_document: found 9, expected an id below vocabulary, 9");
  EXPECT_EQ(refused("text", R"("test": {"lengths": [8, 4, 8]})"), "test.lengths: found 8 twice, expected each once");
  EXPECT_EQ(refused("text", R"("valid": {"lengths": []})"), "valid.lengths: found an empty list, expected at least one length");
  EXPECT_EQ(refused("", R"("valid": {"lengths": [4]})").find(path("")), 0U) << "a folder";
  EXPECT_THROW(test::read_options(plugin_, R"({"format": "utf8"})"), UserError);
  EXPECT_THROW(test::read_options(plugin_, R"({"valid": {"share": 1.0}})"), UserError);
}

}  // namespace
}  // namespace phasor
