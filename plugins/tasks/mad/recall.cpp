#include <algorithm>
#include <cmath>

#include "plugins/tasks/mad/mad.h"

namespace phasor::mad {
namespace {

struct Noise {
  std::int64_t vocabulary = 0;
  double share = 0.0;
};

/// In-context recall: key, value, key, value .. with a value per key of the row; name the value of a key seen before.
///
/// Of n = V - noise tokens the lower half are keys, the upper values (two keys may share one). P = L / 2 pairs: P - 1
/// with any key, the last with a key that was shown. A row has L - 1 positions, its targets are next tokens: at the
/// keys seen before in valid and test, everywhere in training, the unforeseeable too. Noise: a pair is, with
/// probability `share`, two noise tokens instead; the last never, and of the others one, anywhere, never, so that there
/// is a key to ask for. (In the reference that one is, once in P rows, none of them.)
class RecallRows : public MadTask {
 public:
  std::int64_t tokens(const Slice& slice) const override { return slice.length - 1; }
  std::int64_t max_targets(const Slice& slice) const override {
    return slice.split == Split::train && train_all_ ? slice.length - 1 : slice.length / 2;
  }
  double chance() const override { return 1.0 / static_cast<double>(values_); }

 protected:
  RecallRows(const char* name, const Sizes& sizes, bool train_all, const Noise& noise)
      : MadTask(name, sizes),
        train_all_(train_all),
        noise_(noise),
        keys_((sizes.vocabulary - noise.vocabulary) / 2),
        values_(sizes.vocabulary - noise.vocabulary - keys_) {}

  static std::optional<std::string> refuses(const Sizes& sizes, const Noise& noise) {
    if (sizes.length < 4 || sizes.length % 2 != 0)
      return found("length", sizes.length, "an even number from 4: pairs, of which two are least");
    if (sizes.vocabulary < noise.vocabulary + 2)
      return found("vocabulary", sizes.vocabulary,
                   "at least " + std::to_string(noise.vocabulary + 2) + ", noise, a key and a value");
    return refuses_sizes(sizes);
  }

 private:
  void make(Draws& draws, Draws& process, Split split, Sample row) const override;
  double log2_space(Split) const override;

  bool train_all_;
  Noise noise_;
  std::int64_t keys_, values_;
};

void RecallRows::make(Draws& draws, Draws& /*process*/, Split split, Sample row) const {
  const std::int64_t pairs = sizes().length / 2;
  std::vector<std::int32_t> value_of(static_cast<std::size_t>(keys_), -1), shown;
  Text text;
  const auto append = [&](std::int32_t key, bool asked) {
    text.append(key, false, train_all_);
    text.append(value_of[static_cast<std::size_t>(key)], asked, train_all_ || asked);
  };
  const bool noisy = noise_.share > 0.0;
  const std::int64_t kept = noisy ? draw(draws, 0, pairs - 1) : 0;
  for (std::int64_t pair = 0; pair + 1 < pairs; ++pair) {
    if (noisy && pair != kept && draws.chance(noise_.share)) {
      for (int i = 0; i < 2; ++i) text.append(draw(draws, keys_ + values_, noise_.vocabulary), false, train_all_);
      continue;
    }
    const std::int32_t key = draw(draws, 0, keys_);
    std::int32_t& value = value_of[static_cast<std::size_t>(key)];
    const bool again = value >= 0;
    if (!again) {
      value = draw(draws, keys_, values_);
      shown.push_back(key);
    }
    append(key, again);
  }
  append(shown[draws.below(shown.size())], true);
  text.into(row, split);
}

/// The likeliest row shows one key again and again, or nothing but one pair of noise and a key.
double RecallRows::log2_space(Split) const {
  const auto keys = static_cast<double>(keys_), noise = static_cast<double>(noise_.vocabulary);
  double pair = (1.0 - noise_.share) / keys;
  if (noise_.share > 0.0) pair = std::max(pair, noise_.share / (noise * noise));
  const auto free = static_cast<double>(sizes().length / 2 - 2);
  return -free * std::log2(pair) + std::log2(keys) + std::log2(static_cast<double>(values_));
}

const char* const recall_vocabulary = "tokens: the lower half are keys, the upper values";
const char* const recall_length = "tokens of all pairs; a row has one position less, as the last is only predicted";
const char* const train_all_help = "training scores every next token, as the reference; false: what test scores";

class Recall final : public RecallRows {
 public:
  struct Options {
    Sizes sizes;
    bool train_all = true;
    void fields(FieldList& f) {
      sizes.fields(f, recall_vocabulary, recall_length);
      f.boolean("train_all", train_all, train_all_help);
    }
  };
  static std::optional<std::string> refuses(const Options& options) { return RecallRows::refuses(options.sizes, {}); }
  explicit Recall(const Options& options) : RecallRows("mad_recall", options.sizes, options.train_all, {}) {}
};

class NoisyRecall final : public RecallRows {
 public:
  struct Options {
    Sizes sizes{.vocabulary = 32};
    bool train_all = true;
    Noise noise{16, 0.2};
    void fields(FieldList& f) {
      sizes.fields(f, "tokens, noise among them: of the others the lower half are keys, the upper values",
                   recall_length);
      f.boolean("train_all", train_all, train_all_help);
      f.integer("noise_vocabulary", noise.vocabulary, "tokens that are noise, the last ones",
                Range::between(1.0, 16777216.0));
      f.number("noise", noise.share, "probability that a pair is two noise tokens instead", {0.0, 1.0, false, true});
    }
  };
  static std::optional<std::string> refuses(const Options& options) {
    return RecallRows::refuses(options.sizes, options.noise);
  }
  explicit NoisyRecall(const Options& options)
      : RecallRows("mad_noisy_recall", options.sizes, options.train_all, options.noise) {}
};

}  // namespace

void register_recall(Registry& registry) {
  registry.task<Recall>("mad_recall", 2, "MAD: the value that a key came with before in the row");
  registry.task<NoisyRecall>("mad_noisy_recall", 2, "MAD: in-context recall with noise between the pairs");
}

}  // namespace phasor::mad
