#include <algorithm>
#include <cmath>

#include "plugins/tasks/mad/mad.h"

namespace phasor::mad {
namespace {

/// Selective copying: say again the n data tokens that stand scattered among blanks.
///
/// Token V - 1 asks, V - 2 is the blank, the others are data. A row is n data tokens with L - 2n - 1 blanks, each
/// before any of them (so the last one never has a blank behind it), then V - 1 and n blanks, at which the data tokens
/// are the targets, in order. Where blanks stand comes from the generator of the process in the reference, without a
/// seed.
class SelectiveCopying final : public MadTask {
 public:
  struct Options {
    Sizes sizes{.length = 256};
    std::int64_t copied = 16;
    void fields(FieldList& f) {
      sizes.fields(f, "tokens: the last asks, the one before it is the blank, the others are data",
                   "positions of a row");
      f.integer("copied", copied, "data tokens of a row", Range::between(1.0, 524288.0));
    }
  };

  static std::optional<std::string> refuses(const Options& options) {
    const std::int64_t least = 2 * options.copied + 2;
    if (options.sizes.length < least)
      return found("length", options.sizes.length,
                   "at least " + std::to_string(least) + ", the data tokens twice, what asks and a blank");
    if (options.sizes.vocabulary < 3)
      return found("vocabulary", options.sizes.vocabulary, "at least 3, what asks, the blank and data");
    return refuses_sizes(options.sizes);
  }
  explicit SelectiveCopying(const Options& options)
      : MadTask("mad_selective_copying", options.sizes), copied_(options.copied) {}

  std::int64_t tokens(const Slice& slice) const override { return slice.length; }
  std::int64_t max_targets(const Slice&) const override { return copied_; }
  double chance() const override { return 1.0 / static_cast<double>(vocabulary() - 2); }

 private:
  void make(Draws& draws, Draws& process, Split split, Sample row) const override;
  /// Of the data tokens alone.
  double log2_space(Split) const override {
    return static_cast<double>(copied_) * std::log2(static_cast<double>(vocabulary() - 2));
  }

  std::int64_t copied_;
};

void SelectiveCopying::make(Draws& draws, Draws& process, Split, Sample row) const {
  const auto count = static_cast<std::size_t>(copied_), length = row.tokens.size();
  const auto blank = static_cast<std::int32_t>(vocabulary() - 2), asks = static_cast<std::int32_t>(vocabulary() - 1);
  std::vector<std::int64_t> blanks(count);  // before each data token
  std::fill(row.tokens.begin(), row.tokens.end(), blank);
  std::fill(row.targets.begin(), row.targets.end(), -1);
  const auto answers = row.targets.last(count);
  for (std::int32_t& answer : answers) answer = draw(draws, 0, vocabulary() - 2);
  for (std::size_t i = 2 * count + 1; i < length; ++i) ++blanks[process.below(count)];
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    at += static_cast<std::size_t>(blanks[i]);
    row.tokens[at++] = answers[i];
  }
  row.tokens[at] = asks;
}

}  // namespace

void register_selective_copying(Registry& registry) {
  registry.task<SelectiveCopying>("mad_selective_copying", 2, "MAD: data tokens scattered among blanks, again");
}

}  // namespace phasor::mad
