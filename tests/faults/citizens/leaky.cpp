// Backbones that break the promises of a causal layer with explicit state, one each, for the probe to find.
#include "core/ops/elementwise/elementwise.h"
#include "core/ops/time_difference/time_difference.h"
#include "tests/faults/citizens/citizen.h"

namespace citizens {

using namespace phasor;

constexpr std::int64_t block = 16;

struct BlockMean {
  View from, to;
  std::int64_t batch, time, width;
  bool add;
};

/// to_t (+)= mean of from over the block of t; its own transpose.
template <class T>
void block_mean(const BlockMean& a) {
  for (std::int64_t b = 0; b < a.batch; ++b)
    for (std::int64_t t = 0; t < a.time; ++t)
      for (std::int64_t i = 0; i < a.width; ++i) {
        const std::int64_t begin = t / block * block, end = begin + block < a.time ? begin + block : a.time;
        T sum = 0;
        for (std::int64_t u = begin; u < end; ++u) sum += row<T>(a.from, b * a.time + u)[i];
        T& to = row<T>(a.to, b * a.time + t)[i];
        to = sum / static_cast<T>(end - begin) + (a.add ? to : T(0));
      }
}
constexpr Kernel<BlockMean> block_mean_kernel{"leaky.block_mean", block_mean<float>, block_mean<double>};

class Faulty : public Mixer {
 public:
  struct Options {
    void fields(FieldList&) {}
  };
  static std::optional<std::string> refuses(const Options&, std::int64_t) { return std::nullopt; }
  static MixerShape shape(const Options&, std::int64_t dim) { return {dim, 1, 1, dim, dim}; }
  static Hook offers(const Options&) { return Hook::none; }
  Faulty(const Options&, std::int64_t, double, const ParameterScope&) {}
};

/// A summary of every block of 16 tokens, the future of the block included.
class Leaky final : public Faulty {
 public:
  using Faulty::Faulty;
  Tensor forward(Tape& tape, const Tensor& x, const Encoding&, const SequenceContext&, State*) const override {
    const Tensor y = tape.output(x.shape(), {&x});
    const std::int64_t batch = x.size(0), time = x.size(1), width = x.size(2);
    launch(tape.stream(), block_mean_kernel, {x.view(), y.view(), batch, time, width, false}, {0.0, moved(x, y)});
    if (tape.wants(y))
      tape.record([=](Tape& t) {
        const Tensor dy = t.take(y);
        if (!dy) return;
        const auto dx = t.gradient(x);
        launch(t.stream(), block_mean_kernel, {dy.view(), dx.tensor.view(), batch, time, width, dx.accumulate},
               {0.0, moved(dy, dx)});
      });
    return ops::add(tape, x, y);
  }
};

/// Forgets the last token of the piece before.
class Forgetful final : public Faulty {
 public:
  using Faulty::Faulty;
  Tensor forward(Tape& tape, const Tensor& x, const Encoding&, const SequenceContext& context, State*) const override {
    return ops::time_difference(tape, x, {}, false, context.starts).y;
  }
};

/// Takes a packed row for one document.
class Crossing final : public Faulty {
 public:
  using Faulty::Faulty;
  Tensor forward(Tape& tape, const Tensor& x, const Encoding&, const SequenceContext&, State* state) const override {
    const auto out = ops::time_difference(tape, x, state == nullptr ? Tensor() : state->get("x"), state != nullptr);
    if (state != nullptr) state->set("x", out.state);
    return out.y;
  }
};

}  // namespace citizens

PHASOR_PLUGIN("leaky", "1.0", [](phasor::Registry& registry) {
  registry.backbone<citizens::Leaky>("leaky", 1, "reads the future of its block");
  registry.backbone<citizens::Forgetful>("forgetful", 1, "carries nothing");
  registry.backbone<citizens::Crossing>("crossing", 1, "knows no documents");
})
