#include <algorithm>
#include <cmath>
#include <map>

#include "plugins/tasks/mad/mad.h"

namespace phasor::mad {
namespace {

using Motif = std::vector<std::int32_t>;

/// Every ordered choice of different numbers from [first, first + count) is equally likely.
Motif draw_motif(Draws& draws, std::int64_t first, std::int64_t count, std::int64_t size) {
  Motif motif;
  while (static_cast<std::int64_t>(motif.size()) < size) {
    const std::int32_t token = draw(draws, first, count);
    if (std::find(motif.begin(), motif.end(), token) == motif.end()) motif.push_back(token);
  }
  return motif;
}

/// Fuzzy in-context recall: keys and values are of one to `key_size` and `value_size` different tokens.
///
/// The last token is padding; of the other n the lower half make keys, the upper values. A pair that is asked for at
/// the end, the probe, is drawn first, and shown after a uniform number of tokens, or when its key comes by chance.
/// Then pairs are appended until the probe and any pair would not fit, and the probe. A row is padded in front to L + 1
/// tokens; its targets are next tokens: of values whose key was shown before in valid and test, all in training. Sizes
/// are uniform, but that keys of valid and test all have the largest.
///
/// Other than the reference, unless `as_reference`: the probe was always shown (there one in 40 was not, and counts),
/// and padding is no target in training.
class FuzzyRecall final : public MadTask {
 public:
  struct Options {
    Sizes sizes;
    std::int64_t key_size = 3, value_size = 3;
    bool train_all = true, as_reference = false;
    void fields(FieldList& f) {
      sizes.fields(f, "tokens: the last is padding, of the others the lower half make keys, the upper values",
                   "positions of a row");
      f.integer("key_size", key_size, "tokens of a key, at most; in valid and test exactly", Range::between(1.0, 64.0));
      f.integer("value_size", value_size, "tokens of a value, at most", Range::between(1.0, 64.0));
      f.boolean("train_all", train_all, "training scores every next token, as the reference; false: what test scores");
      f.boolean("as_reference", as_reference, "a few probes were never shown, and training scores padding");
    }
    std::int64_t keys() const { return (sizes.vocabulary - 1) / 2; }
    std::int64_t values() const { return sizes.vocabulary - 1 - keys(); }
  };

  static std::optional<std::string> refuses(const Options& options);
  explicit FuzzyRecall(const Options& options) : MadTask("mad_fuzzy_recall", options.sizes), options_(options) {}

  std::int64_t tokens(const Slice& slice) const override { return slice.length; }
  std::int64_t max_targets(const Slice& slice) const override { return slice.length; }
  double chance() const override { return 1.0 / static_cast<double>(options_.values()); }

 private:
  struct Pair {
    Motif key, value;
  };
  void make(Draws& draws, Draws& process, Split split, Sample row) const override;
  double log2_space(Split split) const override;

  Motif draw_key(Draws& draws, std::int64_t size) const { return draw_motif(draws, 0, options_.keys(), size); }
  Motif draw_value(Draws& draws, std::int64_t size) const {
    return draw_motif(draws, options_.keys(), options_.values(), size);
  }
  std::int64_t draw_key_size(Draws& draws, Split split) const {
    return split == Split::train ? draw(draws, 1, options_.key_size) : options_.key_size;
  }
  void append(Text& text, const Pair& pair, bool asked) const;
  bool write(Draws& draws, Split split, Text& text) const;

  Options options_;
};

std::optional<std::string> FuzzyRecall::refuses(const Options& options) {
  if (options.key_size > options.keys())
    return found(
        "key_size", options.key_size,
        "at most " + std::to_string(options.keys()) + ", the tokens that make keys, as a key has different ones");
  if (options.value_size > options.values())
    return found(
        "value_size", options.value_size,
        "at most " + std::to_string(options.values()) + ", the tokens that make values, as a value has different ones");
  const std::int64_t pair = options.key_size + options.value_size;
  if (options.sizes.length < 2 * pair + 1)
    return found("length", options.sizes.length,
                 "at least " + std::to_string(2 * pair + 1) + ", two of the longest pairs and one");
  return refuses_sizes(options.sizes);
}

void FuzzyRecall::append(Text& text, const Pair& pair, bool asked) const {
  for (const std::int32_t token : pair.key) text.append(token, false, options_.train_all);
  for (const std::int32_t token : pair.value) text.append(token, asked, options_.train_all || asked);
}

/// The pairs of a row. False: the probe was not shown before it is asked for.
bool FuzzyRecall::write(Draws& draws, Split split, Text& text) const {
  const std::int64_t length = options_.sizes.length, longest = options_.key_size + options_.value_size;
  const std::int64_t probe_key = draw_key_size(draws, split), probe_value = draw(draws, 1, options_.value_size);
  Pair probe;
  probe.key = draw_key(draws, probe_key);
  probe.value = draw_value(draws, probe_value);
  const std::int64_t size = probe_key + probe_value, probe_at = draw(draws, 0, length - 2 * size);
  std::map<Motif, Motif> shown;
  const auto position = [&] { return static_cast<std::int64_t>(text.tokens.size()); };
  while (position() < length - size - longest) {
    const std::int64_t key_size = draw_key_size(draws, split), value_size = draw(draws, 1, options_.value_size);
    const bool due = position() >= probe_at && !shown.contains(probe.key);
    Pair pair = due ? probe : Pair{draw_key(draws, key_size), {}};
    const auto known = shown.find(pair.key);
    const bool again = known != shown.end();
    if (again)
      pair.value = known->second;
    else if (pair.key == probe.key)
      pair.value = probe.value;
    else
      pair.value = draw_value(draws, value_size);
    append(text, pair, again);
    shown.emplace(std::move(pair.key), std::move(pair.value));
  }
  append(text, probe, true);
  return shown.contains(probe.key);
}

void FuzzyRecall::make(Draws& draws, Draws& /*process*/, Split split, Sample row) const {
  Text body;
  while (!write(draws, split, body) && !options_.as_reference) body = {};
  Text text;
  const auto padding = static_cast<std::int32_t>(options_.sizes.vocabulary - 1);
  const std::size_t pads = row.tokens.size() + 1 - body.tokens.size();
  for (std::size_t i = 0; i < pads; ++i) text.append(padding, false, options_.train_all && options_.as_reference);
  for (std::size_t t = 0; t < body.tokens.size(); ++t) text.append(body.tokens[t], body.asked[t], body.trained[t]);
  text.into(row, split);
}

/// Every pair but the probe has its key drawn, and there are no fewer pairs than if all were the longest.
double FuzzyRecall::log2_space(Split split) const {
  const std::int64_t longest = options_.key_size + options_.value_size;
  const std::int64_t pairs = std::max<std::int64_t>(0, (options_.sizes.length - 2 * longest) / longest - 1);
  double key = std::log2(static_cast<double>(options_.keys() * options_.key_size));
  if (split != Split::train) {
    key = 0.0;
    for (std::int64_t i = 0; i < options_.key_size; ++i) key += std::log2(static_cast<double>(options_.keys() - i));
  }
  return static_cast<double>(pairs) * key;
}

}  // namespace

void register_fuzzy_recall(Registry& registry) {
  registry.task<FuzzyRecall>("mad_fuzzy_recall", 2, "MAD: in-context recall, keys and values of several tokens");
}

}  // namespace phasor::mad
