#include <cmath>
#include <numeric>

#include "core/base/hash.h"
#include "plugins/tasks/mad/mad.h"

namespace phasor::mad {
namespace {

/// Memorisation: name the value of a key by a map that no row shows, the same in all splits and for all seeds.
///
/// Of m = V - 1 tokens the lower half are keys, each with a value of its own among the others; token V - 1 asks. A row
/// is key, V - 1, key, V - 1 .. with any keys; the target at V - 1 is the value of the key before it.
class Memorisation final : public MadTask {
 public:
  struct Options {
    Sizes sizes{.vocabulary = 256, .length = 32, .train = {256}};
    void fields(FieldList& f) {
      sizes.fields(f, "tokens: the last one asks, of the others the lower half are keys, the upper values",
                   "positions of a row: keys, and as often the token that asks");
    }
    std::int64_t keys() const { return (sizes.vocabulary - 1) / 2; }
  };

  static std::optional<std::string> refuses(const Options& options) {
    if (options.sizes.length % 2 != 0) return found("length", options.sizes.length, "an even number");
    if (options.keys() < 1)
      return found("vocabulary", options.sizes.vocabulary, "at least 3, a key, a value and what asks");
    return refuses_sizes(options.sizes);
  }
  explicit Memorisation(const Options& options);

  std::int64_t tokens(const Slice& slice) const override { return slice.length; }
  std::int64_t max_targets(const Slice& slice) const override { return slice.length / 2; }
  double chance() const override { return 1.0 / static_cast<double>(value_of_.size()); }

 private:
  void make(Draws& draws, Draws& process, Split split, Sample row) const override;
  double log2_space(Split) const override {
    return static_cast<double>(sizes().length / 2) * std::log2(static_cast<double>(value_of_.size()));
  }

  std::vector<std::int32_t> value_of_;
};

Memorisation::Memorisation(const Options& options) : MadTask("mad_memorisation", options.sizes) {
  value_of_.resize(static_cast<std::size_t>(options.sizes.vocabulary - 1 - options.keys()));
  std::iota(value_of_.begin(), value_of_.end(), static_cast<std::int32_t>(options.keys()));
  Draws draws(0, Purpose{hash64("mad_memorisation, the map")}, static_cast<std::uint64_t>(options.sizes.vocabulary));
  draws.shuffle(std::span(value_of_));
  value_of_.resize(static_cast<std::size_t>(options.keys()));  // of an odd number of tokens one value has no key
}

void Memorisation::make(Draws& draws, Draws& /*process*/, Split, Sample row) const {
  for (std::size_t t = 0; t + 1 < row.tokens.size(); t += 2) {
    const std::uint64_t key = draws.below(value_of_.size());
    row.tokens[t] = static_cast<std::int32_t>(key);
    row.targets[t] = -1;
    row.tokens[t + 1] = static_cast<std::int32_t>(vocabulary() - 1);
    row.targets[t + 1] = value_of_[key];
  }
}

}  // namespace

void register_memorisation(Registry& registry) {
  registry.task<Memorisation>("mad_memorisation", 2, "MAD: the value of a key by a map that no row shows");
}

}  // namespace phasor::mad
