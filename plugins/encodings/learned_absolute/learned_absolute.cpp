#include "core/ops/elementwise/elementwise.h"
#include "core/ops/embedding/embedding.h"
#include "core/ops/position_ids/position_ids.h"
#include "core/plugin/manifest.h"

namespace {

using namespace phasor;

/// A learned vector per position, added to the token embeddings once, before the first layer. Positions that training never
/// reaches keep their random start, so nothing is to be expected beyond the training length.
class LearnedAbsolute final : public Encoding {
 public:
  struct Options {
    std::optional<std::int64_t> length;
    void fields(FieldList& f) {
      f.integer("length", length, "positions in the table; not set: as many as the longest row of the experiment has",
                Range::between(1, 1 << 24));
    }
  };

  static std::optional<std::string> refuses(const Options& options, const MixerShape& shape) {
    if (!options.length && shape.max_time < 1) return "length: not set, and the longest row is not known";
    if (!options.length || shape.max_time <= *options.length) return std::nullopt;
    return "length: found " + std::to_string(*options.length) + ", expected at least " + std::to_string(shape.max_time) +
           ", the tokens of the longest row";
  }

  LearnedAbsolute(const Options& options, const MixerShape& shape, const ParameterScope& scope)
      : table_(scope.weight("weight", options.length.value_or(shape.max_time), shape.dim)) {}

  Hook hook() const override { return Hook::embedding; }
  bool relative() const override { return false; }

  Tensor on_embedding(Tape& tape, const Tensor& x, const SequenceContext& context, State*) const override {
    const Tensor table = table_();
    PHASOR_CHECK(context.starts || context.offset + x.size(1) <= table.size(0),
                 "position " + std::to_string(context.offset + x.size(1) - 1) + " of a table of " + std::to_string(table.size(0)));
    const Tensor positions = ops::position_ids(tape, x.size(0), x.size(1), context.offset, context.starts);
    return ops::add(tape, x, ops::embedding(tape, positions, table));
  }

 private:
  Parameter table_;  // [length, dim]
};

}  // namespace

PHASOR_PLUGIN("learned_absolute", "1.0", [](phasor::Registry& registry) {
  registry.encoding<LearnedAbsolute>("learned_absolute", 1, "a learned vector per position, added to the embeddings");
})
