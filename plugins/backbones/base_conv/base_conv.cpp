// BaseConv, the gated short convolution of Arora et al. 2023 ("Zoology"; tasks.md 1.8): the first layer of many models for
// associative recall, so that the second sees a key and its value in one step.

#include "core/nn/mixer.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/linear/linear.h"
#include "core/plugin/manifest.h"
#include "plugins/backbones/heads.h"

#include <cmath>

namespace {

using namespace phasor;

/// y = conv(x) (.) (W x + b) + x, conv causal and depthwise with a bias. It has no place for a positional encoding.
class BaseConv final : public Mixer {
 public:
  struct Options {
    std::int64_t kernel = 3;
    void fields(FieldList& f) { f.integer("kernel", kernel, "taps of the causal convolution", Range::between(1, 64)); }
  };

  static std::optional<std::string> refuses(const Options&, std::int64_t) { return std::nullopt; }
  static MixerShape shape(const Options&, std::int64_t dim) { return {dim, 1, 1, dim, dim}; }
  static Hook offers(const Options&) { return Hook::none; }

  BaseConv(const Options& options, std::int64_t dim, double, const ParameterScope& scope) {
    const double bound = 1.0 / std::sqrt(static_cast<double>(options.kernel));  // as the reference's convolution starts
    taps_ = scope.add("conv.weight", {dim, options.kernel}, Init::uniform(-bound, bound));
    taps_bias_ = scope.add("conv.bias", {dim}, Init::uniform(-bound, bound));
    gate_ = scope.weight("proj.weight", dim, dim);
    gate_bias_ = scope.zeros("proj.bias", {dim});
  }

  Tensor forward(Tape& tape, const Tensor& x, const Encoding&, const SequenceContext& context,
                 State* state) const override {
    const Tensor mixed = backbones::carried_conv(tape, x, taps_(), taps_bias_(), false, "conv", context, state);
    const Tensor gate = ops::linear(tape, x, gate_(), gate_bias_());
    return ops::add(tape, ops::mul(tape, mixed, gate), x);
  }

 private:
  Parameter taps_, taps_bias_, gate_, gate_bias_;
};

}  // namespace

PHASOR_PLUGIN("base_conv", "1.0", [](phasor::Registry& registry) {
  registry.backbone<BaseConv>("base_conv", 1, "gated short convolution: neighbours meet, nothing else");
})
