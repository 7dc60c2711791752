#include <cmath>
#include <cstdint>
#include <vector>

#include "core/plugin/manifest.h"

namespace {

/// Linear biases (Press et al. 2022): the score of two tokens falls by slope times their distance, with slopes
/// 2^(-8(h+1)/H) over the heads h = 0 .. H-1 when H is a power of two. Otherwise the slopes of the power of two below
/// come first, then every second one of the power of two above.
class Alibi final : public phasor::Encoding {
 public:
  struct Options {
    void fields(phasor::FieldList&) {}
  };
  static std::optional<std::string> refuses(const Options&, const phasor::MixerShape&) { return std::nullopt; }

  Alibi(const Options&, const phasor::MixerShape& shape, const phasor::ParameterScope& scope) {
    std::vector<double> slopes;  // [heads]
    std::int64_t power = 1;
    while (2 * power <= shape.heads) power *= 2;
    const auto slope = [](std::int64_t head, std::int64_t heads) {
      return std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(heads));
    };
    for (std::int64_t h = 0; h < power; ++h) slopes.push_back(slope(h, power));
    for (std::int64_t h = power; h < shape.heads; ++h) slopes.push_back(slope(2 * (h - power), 2 * power));
    slopes_ = scope.table(slopes);
  }

  phasor::Hook hook() const override { return phasor::Hook::scores; }

  phasor::ScoreBias score_bias(phasor::Tape&, const phasor::Tensor&, const phasor::SequenceContext&,
                               phasor::State*) const override {
    return {slopes_(), {}};
  }

 private:
  phasor::Table slopes_;  // [heads]
};

}  // namespace

PHASOR_PLUGIN("alibi", "1.0", [](phasor::Registry& registry) {
  registry.encoding<Alibi>("alibi", 1, "attention scores fall with distance, by one slope per head");
})
