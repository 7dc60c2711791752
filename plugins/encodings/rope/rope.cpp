#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/portable_math.h"
#include "core/ops/position_angles/position_angles.h"
#include "core/ops/rotate_pairs/rotate_pairs.h"
#include "core/plugin/manifest.h"

namespace {

/// Rotary encoding (Su et al. 2021): plane i of every query and key turns by (t + offset) theta^(-2i/d), so that their
/// product depends on the distance of the two tokens only. With dim < the head, the components from dim on stay.
class Rope final : public phasor::Encoding {
 public:
  struct Options {
    double theta = 500000.0;
    std::optional<std::int64_t> dim;
    std::string layout = "half_split";
    std::int64_t offset = 0;
    void fields(phasor::FieldList& f) {
      f.number("theta", theta, "base of the frequencies", phasor::Range::above(0.0));
      f.integer("dim", dim, "rotated components of a head; all of them when not set", phasor::Range::at_least(2.0));
      f.choice("layout", layout, {"half_split", "interleaved"}, "planes (i, i + dim/2) or (2i, 2i + 1)");
      f.integer("offset", offset, "position of the first token of a sequence", phasor::Range::between(-0x1p40, 0x1p40));
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
    return std::nullopt;
  }

  Rope(const Options& options, const phasor::MixerShape& shape, const phasor::ParameterScope&)
      : offset_(options.offset),
        layout_(options.layout == "interleaved" ? phasor::ops::PairLayout::interleaved
                                                : phasor::ops::PairLayout::half_split) {
    const std::int64_t dim = options.dim.value_or(shape.key_dim);
    for (std::int64_t i = 0; i < dim / 2; ++i) {
      const double power = -2.0 * static_cast<double>(i) / static_cast<double>(dim);
      frequencies_.push_back(phasor::portable::exp(power * phasor::portable::log(options.theta)));
    }
    table_ = phasor::Tensor::borrow(frequencies_.data(), phasor::Dtype::f64, {dim / 2});
  }

  phasor::Hook hook() const override { return phasor::Hook::query_key; }

  phasor::QueryKey on_query_key(phasor::Tape& tape, phasor::QueryKey qk, const phasor::Tensor&,
                                const phasor::SequenceContext& context, phasor::State*) const override {
    const std::int64_t first = offset_ + (context.starts ? 0 : context.offset);
    const phasor::Tensor angle =  // [time, dim/2], and for packed rows [batch, time, dim/2]
        phasor::ops::position_angles(tape, table_, first, qk.q.size(1), context.starts);
    auto [q, k] = phasor::ops::rotate_pairs(tape, qk.q, qk.k, angle, layout_);
    return {q, k};
  }

 private:
  std::vector<double> frequencies_;  // [dim/2], radians per token
  phasor::Tensor table_;             // the same numbers
  std::int64_t offset_;
  phasor::ops::PairLayout layout_;
};

}  // namespace

PHASOR_PLUGIN("rope", "1.0", [](phasor::Registry& registry) {
  registry.encoding<Rope>("rope", 1, "rotation of queries and keys by position");
})
