#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/philox.h"
#include "core/nn/splits.h"
#include "core/plugin/manifest.h"

namespace phasor::copying {
namespace {

const Range length_range = Range::between(1.0, 524288.0);

struct TrainOptions {
  std::int64_t rows = 1000000, length = 420, shortest = 2, longest = 64;
  void fields(FieldList& f) {
    f.integer("rows", rows, "rows before they repeat; the reference never repeats", Range::between(1.0, 1e12));
    f.integer("length", length, "tokens per row; the last one is only predicted", Range::between(5.0, 1048576.0));
    f.integer("shortest", shortest, "letters of a string, at least", length_range);
    f.integer("longest", longest, "letters of a string, at most", length_range);
  }
};

struct EvaluationOptions {
  std::int64_t rows = 1000;
  std::vector<std::int64_t> lengths;
  void fields(FieldList& f) {
    f.integer("rows", rows, "strings of each length", Range::between(1.0, 1e9));
    f.integers("lengths", lengths, "letters of a string", length_range);
  }
};

/// Copying (Jelassi et al., "Repeat After Me", ICML 2024): a sample is `$ s | s .`, its second half to be predicted.
///
/// A training row is packed: strings of uniform length until it is full; the sample that does not fit is cut and not
/// scored, so complete samples are shorter on average than drawn ones. Scored are the copy and the closing `.`.
/// An evaluation row is one sample of 2t + 3 tokens. Nothing is padded: what comes later cannot change what a causal
/// model predicts. Scored are the t letters, given the true copy so far; `prompt` lets the model continue by itself.
/// Token ids are the letters, then `$`, `|`, `.` and `*` (padding, never used, kept for the size of the vocabulary).
///
/// Strings of a length with at least 2^24 of them are drawn in their split, cut ones too, so that none is in two.
/// Against the reference: lengths are listed instead of a range that loses its upper end, and rows depend on their
/// index alone, not on the number of workers.
class Copying final : public Task {
 public:
  struct Options {
    std::int64_t letters = 26;
    bool separate = false;
    bool score_end = false;
    TrainOptions train;
    EvaluationOptions valid{1000, {64}};
    EvaluationOptions test{1000, {16, 32, 64, 128, 256}};
    void fields(FieldList& f) {
      f.integer("letters", letters, "of the alphabet; four more tokens mark a sample", Range::between(2.0, 1048576.0));
      f.boolean("separate", separate,
                "samples of a training row are documents that do not see each other; false as the reference: state "
                "runs from one into the next, which never happens in evaluation");
      f.boolean("score_end", score_end, "valid and test score the closing `.` too; training always does");
      f.object("train", train, "training data");
      f.object("valid", valid, "data that choices are made on");
      f.object("test", test, "data that is reported");
    }
  };

  static std::optional<std::string> refuses(const Options& options);
  explicit Copying(const Options& options)
      : options_(options), log2_letters_(std::log2(static_cast<double>(options.letters))) {}

  std::int64_t vocabulary() const override { return options_.letters + 4; }
  bool packs() const override { return options_.separate; }
  std::vector<Slice> slices(Split split) const override;
  std::int64_t tokens(const Slice& slice) const override {
    return slice.split == Split::train ? slice.length - 1 : sample_length(slice.length);
  }
  std::int64_t max_targets(const Slice& slice) const override;
  std::int64_t prompt(const Slice& slice) const override { return slice.split == Split::train ? 0 : slice.length + 2; }
  double chance() const override { return 1.0 / static_cast<double>(options_.letters); }
  std::string label() const override { return std::to_string(options_.letters) + " letters"; }
  void sample(const Slice& slice, std::uint64_t seed, std::int64_t index, Sample row) const override;
  std::vector<Unit> units(const Slice& slice, const Sample& row) const override;

 private:
  /// The tokens of a row, and which of them are targets.
  struct Text {
    std::vector<std::int32_t> tokens;
    std::vector<bool> scored;
    std::vector<std::int32_t> starts;
  };
  /// The random numbers of a row: its lengths, and each of its strings.
  struct Streams {
    std::uint64_t base = 0;
    Purpose lengths() const { return Purpose{mix64(base)}; }
    Purpose string(std::uint64_t number) const { return Purpose{mix64(base + 1 + number)}; }
  };

  static std::int64_t sample_length(std::int64_t letters) { return 2 * letters + 3; }
  static Streams streams_of(const Slice& slice);
  bool divided(std::int64_t letters) const {
    return static_cast<double>(letters) * log2_letters_ >= log2_divided_space;
  }
  std::int32_t token(std::int64_t mark) const { return static_cast<std::int32_t>(options_.letters + mark); }
  std::int32_t begin() const { return token(0); }
  std::int32_t separator() const { return token(1); }
  std::int32_t end() const { return token(2); }

  std::vector<std::int32_t> draw_string(std::int64_t letters, Split, std::uint64_t seed, Purpose,
                                        std::int64_t index) const;
  void append(Text&, const std::vector<std::int32_t>& string, std::size_t capacity, bool score_end) const;

  Options options_;
  double log2_letters_;
};

std::optional<std::string> refuses_lengths(const char* split, std::vector<std::int64_t> lengths) {
  if (lengths.empty()) return std::string(split) + ".lengths: found an empty list, expected at least one length";
  std::sort(lengths.begin(), lengths.end());
  const auto twice = std::adjacent_find(lengths.begin(), lengths.end());
  if (twice == lengths.end()) return std::nullopt;
  return std::string(split) + ".lengths: found " + std::to_string(*twice) + " twice, expected each length once";
}

std::optional<std::string> Copying::refuses(const Options& options) {
  const TrainOptions& train = options.train;
  if (train.shortest > train.longest)
    return "train.shortest: found " + std::to_string(train.shortest) + ", expected at most train.longest, " +
           std::to_string(train.longest);
  if (train.length < sample_length(train.longest))
    return "train.length: found " + std::to_string(train.length) + ", expected at least " +
           std::to_string(sample_length(train.longest)) + ", a sample of " + std::to_string(train.longest) +
           " letters: else rows have nothing to score";
  if (auto reason = refuses_lengths("valid", options.valid.lengths)) return reason;
  return refuses_lengths("test", options.test.lengths);
}

std::vector<Slice> Copying::slices(Split split) const {
  if (split == Split::train) return {{split, options_.train.length, options_.train.rows}};
  const EvaluationOptions& options = split == Split::valid ? options_.valid : options_.test;
  std::vector<Slice> all;
  for (const std::int64_t length : options.lengths)
    all.push_back({split, length, options.rows, static_cast<std::int64_t>(all.size())});
  return all;
}

std::int64_t Copying::max_targets(const Slice& slice) const {
  if (slice.split != Split::train) return slice.length + (options_.score_end ? 1 : 0);
  // The scored share of a sample, (l + 1) / (2 l + 3), is largest for the longest.
  const std::int64_t longest = options_.train.longest;
  return slice.length * (longest + 1) / sample_length(longest);
}

/// Splits and lengths have nothing in common.
Copying::Streams Copying::streams_of(const Slice& slice) {
  const std::uint64_t split = mix64(hash64("copying") ^ static_cast<std::uint64_t>(slice.split));
  return {mix64(split ^ static_cast<std::uint64_t>(slice.length))};
}

std::vector<std::int32_t> Copying::draw_string(std::int64_t letters, Split split, std::uint64_t seed, Purpose purpose,
                                               std::int64_t index) const {
  std::vector<std::int32_t> string(static_cast<std::size_t>(letters));
  const auto draw = [&](Draws& draws) {
    for (std::int32_t& letter : string)
      letter = static_cast<std::int32_t>(draws.below(static_cast<std::uint64_t>(options_.letters)));
    return content_hash(string);
  };
  if (divided(letters)) {
    draw_in_split(split, seed, purpose, index, draw);
  } else {
    Draws draws(seed, purpose, static_cast<std::uint64_t>(index));
    draw(draws);
  }
  return string;
}

/// Appends a sample, or as much of it as fits; a cut one is not scored.
void Copying::append(Text& text, const std::vector<std::int32_t>& string, std::size_t capacity, bool score_end) const {
  const std::size_t first = text.tokens.size();
  text.tokens.push_back(begin());
  text.tokens.insert(text.tokens.end(), string.begin(), string.end());
  text.tokens.push_back(separator());
  text.tokens.insert(text.tokens.end(), string.begin(), string.end());
  text.tokens.push_back(end());
  const bool complete = text.tokens.size() <= capacity;
  text.scored.resize(first + string.size() + 2, false);
  text.scored.resize(text.tokens.size() - 1, complete);
  text.scored.push_back(complete && score_end);
  text.starts.resize(text.tokens.size(), static_cast<std::int32_t>(first));
}

void Copying::sample(const Slice& slice, std::uint64_t seed, std::int64_t index, Sample row) const {
  const auto count = static_cast<std::size_t>(tokens(slice));
  PHASOR_CHECK(row.tokens.size() == count && row.targets.size() == count && row.starts.size() == (packs() ? count : 0),
               "room for a row of copying");
  const Streams streams = streams_of(slice);
  Text text;
  if (slice.split == Split::train) {
    const TrainOptions& train = options_.train;
    const auto capacity = static_cast<std::size_t>(slice.length);
    Draws lengths(seed, streams.lengths(), static_cast<std::uint64_t>(index));
    for (std::uint64_t number = 0; text.tokens.size() < capacity; ++number) {
      const auto more = lengths.below(static_cast<std::uint64_t>(train.longest - train.shortest + 1));
      const std::int64_t letters = train.shortest + static_cast<std::int64_t>(more);
      append(text, draw_string(letters, slice.split, seed, streams.string(number), index), capacity, true);
    }
  } else {
    append(text, draw_string(slice.length, slice.split, seed, streams.string(0), index), count, options_.score_end);
  }
  for (std::size_t t = 0; t < count; ++t) {
    row.tokens[t] = text.tokens[t];
    row.targets[t] = t + 1 < text.tokens.size() && text.scored[t + 1] ? text.tokens[t + 1] : -1;
  }
  if (packs()) std::copy_n(text.starts.begin(), count, row.starts.begin());
}

/// The strings of complete samples.
std::vector<Unit> Copying::units(const Slice& slice, const Sample& row) const {
  const std::int64_t length = slice.split == Split::train ? slice.length : sample_length(slice.length);
  std::vector<Unit> all;
  for (std::size_t first = 0; first < row.tokens.size();) {
    const auto string = row.tokens.begin() + static_cast<std::ptrdiff_t>(first) + 1;
    const auto letters = std::find(string, row.tokens.end(), separator()) - string;
    const std::size_t next = first + static_cast<std::size_t>(sample_length(letters));
    if (next > static_cast<std::size_t>(length)) break;  // cut
    const auto content = row.tokens.subspan(first + 1, static_cast<std::size_t>(letters));
    all.push_back({content_hash(content), static_cast<double>(letters) * log2_letters_, divided(letters)});
    first = next;
  }
  return all;
}

}  // namespace
}  // namespace phasor::copying

PHASOR_PLUGIN("copying", "1.0", [](phasor::Registry& registry) {
  registry.task<phasor::copying::Copying>("copying", 1, "a string of letters, again");
})
