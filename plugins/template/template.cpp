// A positional encoding to copy: put this file and a CMakeLists.txt with the line
//     phasor_add_plugin(my_encoding SOURCES my_encoding.cpp)
// into plugins/encodings/my_encoding/, rename what is marked, build. The encoding of this file is RoPE with constant
// steps from plane to plane, behind a learned norm of queries and keys.
#include "core/ops/position_angles/position_angles.h"
#include "core/ops/rms_norm/rms_norm.h"
#include "core/ops/rotate_pairs/rotate_pairs.h"
#include "core/plugin/manifest.h"

namespace {

class Octaves final : public phasor::Encoding {  // rename
 public:
  struct Options {  // what the experiment file may set under model.encoding; also help text and checks
    double ratio = 2.0;
    void fields(phasor::FieldList& f) {
      f.number("ratio", ratio, "each plane turns so many times slower than the one before", phasor::Range::above(1.0));
    }
  };

  // Why the encoding does not fit a backbone, or nothing. Asked before anything is trained.
  static std::optional<std::string> refuses(const Options&, const phasor::MixerShape& shape) {
    if (shape.key_dim % 2 == 0) return std::nullopt;
    return "found heads of " + std::to_string(shape.key_dim) + " components, expected an even number";
  }

  // One per layer. Parameters are declared here; their names in a checkpoint are layers.<i>.encoding.<name>.
  Octaves(const Options& options, const phasor::MixerShape& shape, const phasor::ParameterScope& scope)
      : q_norm_(scope.ones("q_norm.weight", {shape.key_dim})), k_norm_(scope.ones("k_norm.weight", {shape.key_dim})) {
    std::vector<double> frequencies;
    for (std::int64_t i = 0; i < shape.key_dim / 2; ++i) {
      frequencies.push_back(i == 0 ? 1.0 : frequencies.back() / options.ratio);
    }
    frequencies_ = scope.table(frequencies);  // numbers that are not trained, where the parameters are
  }

  // Where position enters; only the method of this hook is called.
  phasor::Hook hook() const override { return phasor::Hook::query_key; }

  // Called by several threads at once: no member may change. Ops know their gradients, so there is no backward to
  // write. What must be carried from one piece of a sequence to the next goes into the State; this encoding carries
  // nothing, the context says where the piece begins and where documents begin within it.
  phasor::QueryKey on_query_key(phasor::Tape& tape, phasor::QueryKey qk, const phasor::Tensor& /*x*/,
                                const phasor::SequenceContext& context, phasor::State*) const override {
    const auto first = context.starts ? 0 : context.offset;  // packed rows say themselves where they begin
    const auto angle = phasor::ops::position_angles(tape, frequencies_(), first, qk.q.size(1), context.starts);
    const auto q = phasor::ops::rms_norm(tape, qk.q, q_norm_(), 1e-6);
    const auto k = phasor::ops::rms_norm(tape, qk.k, k_norm_(), 1e-6);
    const auto rotated = phasor::ops::rotate_pairs(tape, q, k, angle, phasor::ops::PairLayout::half_split);
    return {rotated.q, rotated.k};
  }

 private:
  phasor::Parameter q_norm_, k_norm_;  // [key_dim]
  phasor::Table frequencies_;          // [key_dim / 2], radians per token
};

}  // namespace

// Name of the library and its version; then what it brings: name in the experiment file, revision of its numbers (raise
// it when results change), one line of help.
PHASOR_PLUGIN("template", "1.0", [](phasor::Registry& registry) {
  registry.encoding<Octaves>("octaves", 1, "rotation slower by a constant ratio from plane to plane, with q/k norm");
})
