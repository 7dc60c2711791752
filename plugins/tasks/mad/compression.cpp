#include <algorithm>
#include <cmath>

#include "plugins/tasks/mad/mad.h"

namespace phasor::mad {
namespace {

/// Compression: name every token of the row from the state at its last position, with the decoder of an auto-encoder.
///
/// Token V - 1 ends a row, the others are data. A row is L - 1 data tokens, uniform, and the one that ends it; targets
/// are the tokens themselves, at all L positions. The last target never changes: who knows it and guesses the others
/// scores ((L - 1) / (V - 1) + 1) / L of the tokens, and in the mean over classes 2 / V.
class Compression final : public MadTask {
 public:
  struct Options {
    Sizes sizes{.length = 32};
    void fields(FieldList& f) {
      sizes.fields(f, "tokens: the last one ends a row, the others are data",
                   "positions of a row, the one that ends it among them");
    }
  };

  static std::optional<std::string> refuses(const Options& options) {
    if (options.sizes.length < 2) return found("length", options.sizes.length, "at least 2, a data token and the end");
    if (options.sizes.vocabulary < 3)
      return found("vocabulary", options.sizes.vocabulary, "at least 3, two data tokens and the end");
    return refuses_sizes(options.sizes);
  }
  explicit Compression(const Options& options) : MadTask("mad_compression", options.sizes) {}

  Reading reading() const override { return Reading::last; }
  std::int64_t tokens(const Slice& slice) const override { return slice.length; }
  std::int64_t max_targets(const Slice& slice) const override { return slice.length; }
  double chance() const override {
    const auto length = static_cast<double>(sizes().length);
    return ((length - 1.0) / static_cast<double>(vocabulary() - 1) + 1.0) / length;
  }

 private:
  void make(Draws& draws, Draws& /*process*/, Split, Sample row) const override {
    for (std::int32_t& token : row.tokens.first(row.tokens.size() - 1)) token = draw(draws, 0, vocabulary() - 1);
    row.tokens.back() = static_cast<std::int32_t>(vocabulary() - 1);
    std::copy(row.tokens.begin(), row.tokens.end(), row.targets.begin());
  }
  double log2_space(Split) const override {
    return static_cast<double>(sizes().length - 1) * std::log2(static_cast<double>(vocabulary() - 1));
  }
};

}  // namespace

void register_compression(Registry& registry) {
  registry.task<Compression>("mad_compression", 1, "MAD: every token of the row, from its last state alone");
}

}  // namespace phasor::mad
