#include "core/plugin/manifest.h"

namespace {

/// No positional encoding: order enters only through what the backbone itself does (decay, convolution, causal mask).
class Nope final : public phasor::Encoding {
 public:
  struct Options {
    void fields(phasor::FieldList&) {}
  };
  static std::optional<std::string> refuses(const Options&, const phasor::MixerShape&) { return std::nullopt; }
  Nope(const Options&, const phasor::MixerShape&, const phasor::ParameterScope&) {}

  phasor::Hook hook() const override { return phasor::Hook::none; }
};

}  // namespace

PHASOR_PLUGIN("nope", "1.0",
              [](phasor::Registry& registry) { registry.encoding<Nope>("nope", 1, "no positional encoding"); })
