#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "core/base/portable_math.h"
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/position_angles/position_angles.h"
#include "core/ops/rotate_pairs/rotate_pairs.h"
#include "core/plugin/manifest.h"
#include "core/spec/json.h"

namespace {

/// Stretches the rotation for rows that are s times as long as those of the training, s = factor (layers.md 3.3b).
struct ScalingOptions {
  std::string kind = "none";
  double factor = 1.0;
  std::optional<std::int64_t> trained_length;
  double alpha = 1.0, beta = 32.0;
  void fields(phasor::FieldList& f) {
    f.choice("kind", kind, {"none", "linear", "ntk", "yarn"},
             "linear: positions / factor; ntk: theta * factor^(d/(d-2)); yarn: slow planes as linear, fast ones as "
             "they are");
    f.number("factor", factor, "length of the rows over the trained length", phasor::Range::at_least(1.0));
    f.integer("trained_length", trained_length, "of yarn: tokens of the rows before scaling",
              phasor::Range::at_least(1.0));
    f.number("alpha", alpha, "of yarn: a plane with fewer turns within the trained length is slow",
             phasor::Range::at_least(0.0));
    f.number("beta", beta, "of yarn: a plane with more turns is fast", phasor::Range::above(0.0));
  }

  std::optional<std::string> refuses(std::int64_t dim) const {
    if (kind == "none" && factor != 1.0)
      return "scaling.factor: found " + phasor::shortest(factor) + ", but scaling.kind is none";
    if (kind == "ntk" && dim <= 2)
      return "scaling: ntk needs more than 2 rotated components, found " + std::to_string(dim);
    if (kind == "yarn" && !trained_length) return "scaling.trained_length: not set, but yarn needs it";
    if (kind == "yarn" && beta <= alpha)
      return "scaling.beta: found " + phasor::shortest(beta) + ", expected more than alpha, " + phasor::shortest(alpha);
    return std::nullopt;
  }

  double base(double theta, std::int64_t dim) const {
    if (kind != "ntk") return theta;
    const double d = static_cast<double>(dim);
    return theta * phasor::portable::exp(d / (d - 2.0) * phasor::portable::log(factor));
  }
  double frequency(double unscaled) const {
    if (kind == "linear") return unscaled / factor;
    if (kind != "yarn") return unscaled;
    const double turns = static_cast<double>(*trained_length) * unscaled / (2.0 * std::numbers::pi);
    const double fast = std::clamp((turns - alpha) / (beta - alpha), 0.0, 1.0);
    return (1.0 - fast) * unscaled / factor + fast * unscaled;
  }
  /// Of queries and of keys, rotated components or not (YaRN's attention temperature).
  double gain() const { return kind == "yarn" ? 0.1 * phasor::portable::log(factor) + 1.0 : 1.0; }
};

/// Rotary encoding (Su et al. 2021): plane i of every query and key turns by (t + offset) theta^(-2i/d), so that their
/// product depends on the distance of the two tokens only. With dim < the head, the components from dim on stay.
/// Scaled: linear (Chen et al. 2023), NTK-aware, YaRN (Peng et al. 2023).
class Rope final : public phasor::Encoding {
 public:
  struct Options {
    double theta = 500000.0;
    std::optional<std::int64_t> dim;
    std::string layout = "half_split";
    std::int64_t offset = 0;
    ScalingOptions scaling;
    void fields(phasor::FieldList& f) {
      f.number("theta", theta, "base of the frequencies", phasor::Range::above(0.0));
      f.integer("dim", dim, "rotated components of a head; all of them when not set", phasor::Range::at_least(2.0));
      f.choice("layout", layout, {"half_split", "interleaved"}, "planes (i, i + dim/2) or (2i, 2i + 1)");
      f.integer("offset", offset, "position of the first token of a sequence", phasor::Range::between(-0x1p40, 0x1p40));
      f.object("scaling", scaling, "stretches the rotation for rows longer than the trained ones");
    }
  };

  static std::optional<std::string> refuses(const Options& options, const phasor::MixerShape& shape) {
    const std::string head = std::to_string(shape.key_dim);
    if (!options.dim && shape.key_dim % 2 != 0) {
      return "found heads of " + head + " components, expected an even number" +
             (shape.key_dim > 2 ? "; set dim to an even number below " + head : "");
    }
    if (options.dim && *options.dim > shape.key_dim) {
      return "dim: found " + std::to_string(*options.dim) + ", expected at most " + head + ", the width of a head";
    }
    if (options.dim && *options.dim % 2 != 0) {
      return "dim: found " + std::to_string(*options.dim) + ", expected an even number";
    }
    return options.scaling.refuses(options.dim.value_or(shape.key_dim));
  }

  Rope(const Options& options, const phasor::MixerShape& shape, const phasor::ParameterScope& scope)
      : offset_(options.offset),
        gain_(options.scaling.gain()),
        layout_(options.layout == "interleaved" ? phasor::ops::PairLayout::interleaved
                                                : phasor::ops::PairLayout::half_split) {
    const std::int64_t dim = options.dim.value_or(shape.key_dim);
    const double theta = options.scaling.base(options.theta, dim);
    std::vector<double> frequencies;
    for (std::int64_t i = 0; i < dim / 2; ++i) {
      const double power = -2.0 * static_cast<double>(i) / static_cast<double>(dim);
      frequencies.push_back(options.scaling.frequency(phasor::portable::exp(power * phasor::portable::log(theta))));
    }
    frequencies_ = scope.table(frequencies);
  }

  phasor::Hook hook() const override { return phasor::Hook::query_key; }

  phasor::QueryKey on_query_key(phasor::Tape& tape, phasor::QueryKey qk, const phasor::Tensor&,
                                const phasor::SequenceContext& context, phasor::State*) const override {
    context.show("temperature", frequencies_());
    const std::int64_t first = offset_ + (context.starts ? 0 : context.offset);
    const phasor::Tensor angle =  // [time, dim/2], and for packed rows [batch, time, dim/2]
        phasor::ops::position_angles(tape, frequencies_(), first, qk.q.size(1), context.starts);
    auto [q, k] = phasor::ops::rotate_pairs(tape, qk.q, qk.k, angle, layout_);
    if (gain_ == 1.0) return {q, k};
    return {phasor::ops::scale(tape, q, gain_), phasor::ops::scale(tape, k, gain_)};
  }

 private:
  phasor::Table frequencies_;  // [dim/2], radians per token
  std::int64_t offset_;
  double gain_;
  phasor::ops::PairLayout layout_;
};

}  // namespace

PHASOR_PLUGIN("rope", "1.0", [](phasor::Registry& registry) {
  registry.encoding<Rope>("rope", 1, "rotation of queries and keys by position");
})
